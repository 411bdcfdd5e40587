"""`ragbench export`."""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench import console

DESCRIPTION = """Write a measured configuration for production: a bundle that runs elsewhere, or a
configuration file of ragdocs or Librarian.

What a format cannot express is listed in the file and here. A configuration whose gain over the run's first arm (or
baseline=ARM) is not established needs force=true, and the export says so."""
EXAMPLES = """examples:
  ragbench export run=results/runs/A format=ragbench out=bundle
  ragbench export run=results/runs/A arm=phase3 format=ragdocs version=2026-08 out=config.toml
  ragbench export run=3f2a... format=librarian out=config.json force=true     an MLflow run by its id
  ragbench export run=results/runs/A out=bundle include_index=false           built again where it is used

words: run=FOLDER|ID  arm=NAME  format=ragbench|ragdocs|librarian  version=VERSION  out=PATH
  baseline=ARM  force=true  include_index=false
"""

_WORDS = ("run", "arm", "format", "version", "out", "baseline", "force", "include_index")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own words and overrides."""
    parser.add_argument(
        "words", nargs="*", metavar="word=value", help="words below, and tracking.uri=... for a run's id"
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Find the arm, weigh its evidence, write, say what is missing."""
    from ragbench.errors import ConfigError
    from ragbench.export.write import write

    given, overrides = split_words(arguments.words, _WORDS)
    if "run" not in given:
        raise ConfigError("run= is missing: name a results folder or the id of an MLflow run")
    with console.progress(arguments.quiet or arguments.json) as progress:
        written = write(
            run_folder(given["run"], overrides),
            Path(given["out"]).expanduser() if given.get("out") else None,
            arm=given.get("arm"),
            format=given.get("format", "ragbench"),
            version=given.get("version"),
            baseline=given.get("baseline"),
            force=truth(given, "force", False),
            include_index=truth(given, "include_index", True),
            progress=progress,
            say=console.say,
        )
    evidence = written.evidence
    if arguments.json:
        said = {"out": str(written.out), "format": written.format, "gain": evidence.gain, "evidence": evidence.sentence}
        console.print_json({**said, "caution": written.caution, "not_expressed": list(written.missing)})
        return 0
    for sentence in written.missing:
        console.say(f"not expressed: {sentence}" if written.format != "ragbench" else f"note: {sentence}")
    console.say(f"warning: {written.caution}" if written.caution else f"evidence: {evidence.sentence}")
    print(f"{written.format} of {written.arm} in {written.out}")
    return 0


def split_words(words: list[str], known: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """The command's own words by name, and the rest, which are overrides. Raises ConfigError for a word given twice."""
    from ragbench.errors import ConfigError

    given: dict[str, str] = {}
    overrides = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"'{word}' has no value: words have the form name=value")
        if name not in known:
            overrides.append(word)
        elif name in given:
            raise ConfigError(f"{name}= is given twice")
        else:
            given[name] = value
    return given, overrides


def truth(given: dict[str, str], name: str, otherwise: bool) -> bool:
    """A word that is true or false."""
    from ragbench.errors import ConfigError

    value = given.get(name, str(otherwise)).lower()
    if value not in ("true", "false"):
        raise ConfigError(f"{name} must be true or false, got {given[name]}")
    return value == "true"


def run_folder(source: str, overrides: list[str]) -> Path:
    """The folder of a run that is named by its path or by the id of its MLflow run."""
    path = Path(source).expanduser()
    if path.exists():
        return path
    from ragbench import app, tracking

    return Path(tracking.folder_of(tracking.target_of(app.compose(overrides)), source))
