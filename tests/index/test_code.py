"""P7: code blocks by identifiers, their parts and languages."""

from pathlib import Path

import numpy as np
import pytest

from ragbench.base.types import IndexError_
from ragbench.index.code import CodeIndex, build_code, common_name
from tests.tables import rows

BLOCKS = [
    (0, "def get_user_by_id(user_id: int) -> User: ...", "python"),
    (1, "const user = await getUserById(42);", "TypeScript"),
    (2, "std::vector<int> values; values.push_back(1);", "cpp"),
    (3, "corctl feed create --max-lag 30s --name orders", "sh"),
    (4, "String token = client.getAuthToken();", "java"),
    (5, "auth = Auth(); token = auth.get(); auth.token", "py"),
    (6, "raise HTTPResponseError('STR-2031')", ""),
    (7, "token = parse_json_data(raw)  # see Node.js v3.1.2", "Python"),
    (8, "fn read_config(path: &Path) -> Result<Config> { toml::from_str(&text) }", "rs"),
    (9, "module.exports.openSocket = () => {};", "js"),
]
ROWS = [{"code": code, "language": language} for _, code, language in BLOCKS]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> CodeIndex:
    folder = tmp_path_factory.mktemp("code")
    build_code(folder, ROWS)
    return CodeIndex(folder)


@pytest.mark.parametrize(("text", "best"), rows("index_code", "code_index_ranks_the_block_with_the_identifier_first"))
def test_code_index_ranks_the_block_with_the_identifier_first(index: CodeIndex, text: str, best: int) -> None:
    assert index.search(text, 3).chunks[0] == best


def test_code_index_matches_camel_case_with_snake_case(index: CodeIndex) -> None:
    for text in ("getUserById", "get_user_by_id"):
        assert set(index.search(text, 2).chunks.tolist()) == {0, 1}


def test_code_index_language_restricts_the_search_itself(index: CodeIndex) -> None:
    assert index.search("token", 1, "java").chunks.tolist() == [4]
    assert set(index.search("token", 9, "python").chunks.tolist()) == {5, 7}
    assert index.search("token", 9, "python") == index.search("token", 9, " PY ")
    assert len(index.search("token", 9, "cobol")) == 0
    assert index.search("user", 9, "ts").chunks.tolist() == [1]


def test_code_index_mask_restricts_further(index: CodeIndex) -> None:
    mask = np.arange(len(BLOCKS)) != 5
    assert index.search("token", 9, "python", mask).chunks.tolist() == [7]
    assert 5 not in index.search("token", 9, allowed=mask).chunks


def test_code_index_languages_are_counted_under_one_name(index: CodeIndex) -> None:
    expected = {"python": 3, "typescript": 1, "cpp": 1, "bash": 1, "java": 1, "": 1, "rust": 1, "javascript": 1}
    assert dict(index.languages) == expected
    assert [common_name(name) for name in ("C++", "c#", "Shell", "rust", "")] == ["cpp", "csharp", "bash", "rust", ""]


def test_code_index_without_blocks(tmp_path: Path) -> None:
    build_code(tmp_path, [])
    index = CodeIndex(tmp_path)
    assert len(index) == 0
    assert len(index.search("token", 5, "python")) == 0


def test_code_index_may_have_no_hit(index: CodeIndex) -> None:
    for text in ("", "::", "--", "unheardof"):
        assert len(index.search(text, 5)) == 0


def test_code_index_refuses_missing_damaged_and_closed(tmp_path: Path) -> None:
    with pytest.raises(IndexError_, match="no lexical index"):
        CodeIndex(tmp_path / "none")
    build_code(tmp_path, ROWS)
    index = CodeIndex(tmp_path)
    index.check()
    index.close()
    with pytest.raises(IndexError_, match="is closed"):
        index.search("token", 5)
    (commit,) = tmp_path.glob("segments_*")
    commit.write_bytes(commit.read_bytes().replace(b"python", b"cython"))
    with pytest.raises(IndexError_, match="is damaged"):
        CodeIndex(tmp_path)
