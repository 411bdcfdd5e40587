"""What README and docs/ say is tried: every command line is parsed and composed, Python marked `<!-- run -->` is run.

A page's marked blocks run in order, in one folder with a handbook in `notes/`, questions in `queries.csv` and a bundle
in `bundle/`, which is what the pages talk about. `tests/journeys/test_examples.py` runs the commands.
"""

from __future__ import annotations

import argparse
import importlib
import re
import runpy
import shlex
import shutil
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.base.errors import RagbenchError
from ragbench.commands import call, cli
from ragbench.config import catalogue, composition
from ragbench.config.catalogue import names as switch_names
from ragbench.corpus.reader import read_vault
from tests.anserini_index import build
from tools import configuration_page

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
GENERATED = ROOT / "docs" / "configuration.md"

BLOCK = re.compile(r"(?P<run><!-- run -->\n\n)?^ *```(?P<kind>bash|python)\n(?P<body>.*?)^ *```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `run` when it is marked to be run."""

    page: Path
    kind: str
    body: str
    run: bool

    @property
    def lines(self) -> Iterator[tuple[list[str], bool]]:
        """The words of every ragbench call, and whether it may fail (`|| true`)."""
        for line in self.body.splitlines():
            words = shlex.split(line, comments=True)
            ends = [place for place, word in enumerate(words) if word in ("|", "||", ">", "&&")]
            called = words[: ends[0]] if ends else words
            called = called[2:] if called[:2] == ["python", "-m"] else called
            if called[:1] == ["ragbench"]:
                yield called[1:], words[-2:] == ["||", "true"]


@cache
def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found += [Block(page, m["kind"], m["body"], bool(m["run"])) for m in BLOCK.finditer(text)]
    return found


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def parsed(words: list[str]) -> argparse.Namespace:
    called = call(words)
    assert called is not None, f"there is no command {words[0]}"
    module = importlib.import_module(called.module)
    parser = argparse.ArgumentParser(prog=f"ragbench {called.name}", exit_on_error=False)
    module.add_arguments(parser)
    cli.add_common(parser)
    return parser.parse_intermixed_args(called.rest)


def overrides(words: list[str]) -> list[str] | None:
    """The overrides of a call, None when its command takes none."""
    arguments = vars(parsed(words))
    if "overrides" not in arguments and "words" not in arguments:
        return None
    given = [*arguments.get("overrides", []), *arguments.get("words", [])]
    return [word for word in given if "=" in word]


def take(words: list[str]) -> None:
    """Parse a call and compose its overrides."""
    if not words or words[0].startswith("-"):
        assert not words or words[0] in ("--help", "--version")
        return
    given = overrides(words)
    if given is not None:
        (composition.sweep if vars(parsed(words)).get("multirun") else composition.compose)(given)


def test_every_call_is_one_that_ragbench_takes() -> None:
    calls = {(name(block.page), *words) for block in blocks() if block.kind == "bash" for words, _ in block.lines}
    assert len(calls) > 150
    refused = []
    for page, *words in sorted(calls):
        try:
            take(words)
        except (AssertionError, RagbenchError, argparse.ArgumentError, SystemExit) as error:
            refused.append(f"{page}: {shlex.join(words)}: {error!r}")
    assert refused == []


def test_python_that_is_not_run_is_python() -> None:
    for block in blocks():
        if block.kind == "python" and not block.run:
            compile(re.sub(r"^   ", "", block.body, flags=re.M), name(block.page), "exec")


@pytest.fixture
def place(
    tmp_path: Path,
    workplace: Path,
    small_bundle: Path,
    vault_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Path:
    shutil.copytree(vault_folder.parent / "phases", tmp_path / "notes")
    rows = [
        "how do programs prove their identity,authentication.md",
        "counters,metrics.md",
        "copies of the data at night,backup.md",
        "why is a request slow,slow-requests.md",
    ]
    (tmp_path / "queries.csv").write_text("\n".join(["text,relevant", *rows]) + "\n", encoding="utf-8")
    (tmp_path / "bundle").symlink_to(small_bundle)
    if "coming-from" in request.node.name:
        records = [{"id": each.docno, "contents": each.text} for each in read_vault(tmp_path / "notes").documents]
        build(records, tmp_path / "indexes", "-storeDocvectors").rename(tmp_path / "indexes" / "notes")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locations, "results", lambda: workplace / "docs")
    return tmp_path


RUN = sorted({block.page for block in blocks() if block.run})


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name)
def test_marked_python_runs(page: Path, place: Path) -> None:
    for block in blocks():
        if block.page == page and block.run:
            run_python(block)


def run_python(block: Block) -> None:
    """As a module of its own, so that its classes are found by name."""
    module = types.ModuleType(f"docs_{block.page.stem.replace('-', '_')}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(block.body, name(block.page), "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]


def slug(heading: str) -> str:
    words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
    return words.strip().replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {slug(heading) for heading in HEADING.findall(text)}


def test_links_lead_somewhere() -> None:
    assert [each for page in PAGES for each in dead_links(page)] == []


def dead_links(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere, each with what is missing."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    for link in LINK.findall(text):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if path.is_relative_to(ROOT / "results") and not path.exists():
            continue  # measured apart from the text, and committed with the figures
        if not path.exists():
            yield f"{name(page)}: {link} leads nowhere"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"{name(page)}: {link}: {path.name} has no such heading"


def test_every_page_is_reached_from_the_readme() -> None:
    seen, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        left += [
            (page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(page.read_text(encoding="utf-8"))
        ]
    assert set(PAGES) <= seen


def test_every_switch_is_on_the_page_of_configuration_with_its_parameters() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    found = catalogue.read()
    assert configuration_page.switches(found) in page, "run: python tools/reference.py"
    for group in found.switches:
        section = re.split(r"^##", page.partition(f"\n### {group.name}\n")[2], maxsplit=1, flags=re.M)[0]
        for parameter in group.parameters:
            assert f"| `{parameter.key}` | `{parameter.short}` |" in section, parameter
    text = (ROOT / "docs" / "optional-features.md").read_text(encoding="utf-8")
    assert "(configuration.md#switches)" in text
    effects = text.partition("<!-- effects -->")[2].partition("<!-- end of effects -->")[0]
    proposals = [group.name for group in found.switches if group.name in switch_names.ALIASES]
    assert len(proposals) == 13
    for name in proposals:
        assert re.search(rf"^### {name} \([\w -]+\)\n\n.+", text, re.M), name
        assert f"\n| `{switch_names.label(name)}` | " in effects, f"{name} has no measured effect"


@pytest.mark.parametrize("page", ["command-line.md", "configuration.md", "python-api.md"])
def test_generated_reference_is_current(page: str) -> None:
    write = runpy.run_path(str(ROOT / "tools" / "reference.py"))["PAGES"][page]
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == write(), "run: python tools/reference.py"


def test_the_screens_that_make_screens_writes_are_where_it_looks_for_them() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^`ragbench run -m [^`]+`", readme, re.M) and "```\nnDCG@10 on builtin" in readme
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    screens = page.partition("## Output of each command")[2].partition("\n## ")[0]
    assert screens.count("```\n") == 2 * len(re.findall(r"^\$ ragbench", page, re.M)) > 0


def test_pages_say_nothing_of_the_machine_they_were_written_on() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"/work/|/root/|/home/\w|pypi\.org", text), page
