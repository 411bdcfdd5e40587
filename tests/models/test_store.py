from __future__ import annotations

import hashlib
import logging
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import ModelError
from ragbench.models.store import Store, key_of
from tests.naming import naming

VALUES = {key_of(str(number)): b"v" * 500 + b"%d" % number for number in range(2000)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "values.sqlite"


def filled(path: Path) -> Store:
    store = Store(path, "t")
    store.write(VALUES)
    store.close()
    return store


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
)
def test_keys_are_equal_only_for_equal_parts(first: list[str], second: list[str]) -> None:
    assert (key_of(*first) == key_of(*second)) == (first == second)


def test_store_key_by_hand() -> None:
    assert key_of("ab", "c") == hashlib.sha256(b"2:ab1:c").digest()
    assert key_of("ab", "c") != key_of("a", "bc")


def test_store_gives_back_what_was_stored(path: Path) -> None:
    store = filled(path)
    assert store.read([*VALUES, key_of("absent")]) == VALUES
    assert len(store) == len(VALUES)
    store.write({key_of("0"): b"new"})
    assert store.read([key_of("0")]) == {key_of("0"): b"new"}
    assert store.read([]) == {}
    store.close()
    store.close()


def test_tables_of_one_file_are_apart(path: Path) -> None:
    one, other = Store(path, "one"), Store(path, "other")
    one.write({b"k": b"1"})
    other.write({b"k": b"2"})
    assert (one.read([b"k"]), other.read([b"k"])) == ({b"k": b"1"}, {b"k": b"2"})


def test_threads_share_one_store(path: Path) -> None:
    store = Store(path, "t")

    def work(part: int) -> None:
        mine = {key: value for number, (key, value) in enumerate(VALUES.items()) if number % 4 == part}
        for key, value in mine.items():
            if int.from_bytes(key[:1]) < 60:
                store.write({key: value})
        store.write(mine)
        assert store.read(list(mine)) == mine

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))  # raises what a thread has raised
    assert store.read(list(VALUES)) == VALUES


def test_processes_share_one_new_file(path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom ragbench.models.store import Store, key_of\n"
        "store = Store(Path(sys.argv[1]), 't')\n"
        "for number in range(100):\n"
        "    store.write({key_of(sys.argv[2], str(number)): b'value'})\n"
        "store.write({key_of(sys.argv[2], str(n)): b'v%d' % n for n in range(200)})\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(path), str(number)]) for number in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    expected = {key_of(str(part), str(n)): b"v%d" % n for part in range(4) for n in range(200)}
    assert Store(path, "t").read(list(expected)) == expected


def test_store_killed_writer_leaves_a_sound_file(path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom ragbench.models.store import Store, key_of\n"
        "store = Store(Path(sys.argv[1]), 't')\n"
        "number = 0\n"
        "while True:\n"
        "    store.write({key_of(str(number), str(n)): b'value' * 50 for n in range(100)})\n"
        "    number += 1\n"
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(20):
            process.stdout.readline()
        process.kill()
    store = Store(path, "t")
    assert len(store) % 100 == 0 and len(store) >= 2000
    assert len(store.read([key_of("0", str(n)) for n in range(100)])) == 100


def damage_all(path: Path) -> None:
    path.write_bytes(b"this is no database, it only lies where one should be" * 100)


def damage_pages(path: Path) -> None:
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 64)


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 3)


@pytest.mark.parametrize("damage", [damage_all, damage_pages, truncate])
def test_store_damaged_file_is_put_aside_and_begun_anew(path: Path, damage, caplog: pytest.LogCaptureFixture) -> None:
    store = filled(path)
    damage(path)
    with caplog.at_level(logging.WARNING):
        values = store.read(list(VALUES))
    assert values == {}
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"cache {path} is damaged (")
    assert message.endswith("moved to values.sqlite.damaged and started again")
    assert path.with_name("values.sqlite.damaged").exists()
    store.write(VALUES)
    assert Store(path, "t").read(list(VALUES)) == VALUES


def test_store_damage_found_while_open(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = filled(path)
    assert len(store.read([key_of("0")])) == 1
    damage_pages(path)
    assert store.read(list(VALUES)) == {}
    assert "is damaged" in caplog.text


def test_store_repaired_by_another_process_is_kept(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = filled(path), Store(path, "t")
    first.read([]), second.read([])
    damage_pages(path)
    assert first.read(list(VALUES)) == {}
    first.write({b"k": b"made by the first"})
    assert second.read([*VALUES, b"k"]) == {b"k": b"made by the first"}
    assert len(caplog.records) == 1


def test_store_damaged_value_is_not_found(path: Path) -> None:
    store = filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE t SET value = X'00' WHERE key = ?", (key_of("7"),))
        connection.execute("UPDATE t SET value = 'text' WHERE key = ?", (key_of("8"),))
    connection.close()
    assert set(VALUES) - set(store.read(list(VALUES))) == {key_of("7"), key_of("8")}


def test_store_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE precious (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ModelError, check=naming(path)):
        Store(path, "t").read([b"k"])
    assert path.read_bytes() == before


def test_store_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, check=naming(tmp_path)):
        Store(tmp_path, "t").read([b"k"])
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, check=naming(tmp_path)):
        Store(tmp_path / "file" / "values.sqlite", "t").read([b"k"])
