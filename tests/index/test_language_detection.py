"""The language of a text."""

# ruff: noqa: RUF001 (letters of other scripts)

import pytest

from ragbench.index.language_detection import language, languages


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Where are the lamps that you lit, and why is the house dark?", "English"),
        ("Der Schlüssel ist nicht in der Lampe, und das Haus ist dunkel.", "German"),
        ("Les lampes sont dans la maison pour que le soir ne soit pas noir.", "French"),
        ("ランプは夕方に灯ります", "Japanese"),
        ("東京の天気予報", "Japanese"),
        ("灯在晚上亮起来 `the lamp and the house of it`", "Chinese"),
        ("램프가 켜집니다", "Korean"),
        ("Лампы горят вечером", "Russian"),
        ("Лампи горять увечері, і це не для нас, що з ними", "Ukrainian"),
        ("Лампите не са за нас, това е от вечерта", "Bulgarian"),
        ("چراغ ها در شب روشن است و این را که از", "Persian"),
        ("المصابيح في المنزل على الطاولة", "Arabic"),
        ("Lamporna är tända och dörren är inte öppen för att det är sent.", "Swedish"),
        ("Lampene er tent, og det er ikke lys som kommer av at døren er åpen.", "Norwegian"),
        ("Lampy się nie palą, bo jest wieczór i to jest dla nas dobre.", "Polish"),
        ("Строка таблицы: да, да, да, да, от 1 минуты, от 2 минут, от 3 минут, от 5 минут, за год, за день", "Russian"),
        (
            "| Service | Limit |\n| InstrumentsService | от 1 минуты |\n| UsersService | не чаще раза в минуту |",
            "Russian",
        ),
        ("apollo 客户端 https://github.com/one https://github.com/two https://github.com/three 感谢支持", "Chinese"),
        ("感谢 [node-apollo](https://github.com/long/name-of-a-repository) 的支持", "Chinese"),
        ("github.com/one github.com/two github.com/three github.com/four", ""),
        ("LNT-301 LNT-302", ""),
        ("```\nDie Kette ist nicht mit der Kette und das\n```", ""),
    ],
)
def test_language_is_recognised(text: str, name: str) -> None:
    assert language(text) == name


def test_languages_of_few_texts_are_not_named() -> None:
    texts = ["The lamp and the house of it."] * 39 + ["Die Kette ist nicht mit der Kette."]
    assert languages(texts) == [("English", 39)]
    assert languages(texts[20:]) == [("English", 19), ("German", 1)]
