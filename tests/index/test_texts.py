"""The texts that other artefacts and models take in."""

from ragbench.index.texts import headed, passages_of


def test_a_passage_below_its_title_and_headings(index) -> None:
    table = index.chunks
    for chunk in range(table.n_retrievable):
        first, blank, rest = headed(table, chunk).partition("\n\n")
        path, title = table.header_path(chunk), table.titles[table.document[chunk]]
        # the title stands once, even where the first heading repeats it
        assert first.split(" > ") == list(path if path[:1] == (title,) else (title, *path))
        assert (blank, rest) == ("\n\n", table.text(chunk))


def test_an_embedded_passage_has_headings_only_where_asked(index) -> None:
    table = index.chunks
    assert passages_of(table, headings=False) == table.texts(0, table.n_retrievable)
    path = table.header_path(0)
    assert passages_of(table, headings=True)[0] == f"{' > '.join(path)}\n\n{table.text(0)}" if path else table.text(0)
