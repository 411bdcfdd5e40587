"""`ragbench report reference`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.errors import ConfigError
from ragbench.base.files import write_between, write_text

if TYPE_CHECKING:
    from ragbench.workbench import Experiment, Results

DESCRIPTION = "Measure the presets and both one-at-a-time ablations and write the reference tables."
EXAMPLES = """examples:
  ragbench report reference                                    into results/REFERENCE.md
  ragbench report reference --out /tmp/REFERENCE.md latency.queries=10
  ragbench report reference --presets baseline,all --no-ablations
  ragbench report reference --presets recommended --no-ablations --out REFERENCE.md --update
  ragbench report reference --effects docs/optional-features.md --readme docs/findings.md    also write into pages
"""

# By the head of its column in the table of effects: the title of the ablation, and its command.
_ABLATIONS = {
    "on top of all others": (
        "Leaving each proposal out of `all`, test split",
        ("exp=all", "design=leave_one_out", "split=test"),
    ),
    "alone on `baseline`": (
        "Adding each proposal to `baseline`, test split",
        ("exp=baseline", "design=add_one", "split=test"),
    ),
    "alone on `ragdocs`": (
        "Adding each proposal to `ragdocs`, test split",
        ("exp=ragdocs", "design=add_one", "split=test"),
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Presets, what to leave out, where to write."""
    parser.add_argument("--presets", metavar="NAME,NAME", help="comma-separated experiments (default: all of conf/exp)")
    parser.add_argument("--no-ablations", action="store_true", help="only the presets")
    parser.add_argument(
        "--update", action="store_true", help="keep what the file has of other presets; every row names its commit"
    )
    parser.add_argument("--out", metavar="FILE", help="the file to write (default: REFERENCE.md in the results folder)")
    parser.add_argument(
        "--effects", metavar="FILE", help="a page whose mark <!-- effects --> gets the table of measured effects"
    )
    parser.add_argument(
        "--readme", metavar="FILE", help="a page whose mark <!-- presets: baseline all --> gets a table"
    )
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Run everything, then write one file."""
    from ragbench.report import reference
    from ragbench.workbench import Experiment

    if arguments.effects and (arguments.no_ablations or "<!-- effects -->" not in Path(arguments.effects).read_text()):
        raise ConfigError("--effects needs a page with <!-- effects --> and <!-- end of effects -->, and the ablations")
    readme = Path(arguments.readme).read_text("utf-8") if arguments.readme else ""
    chosen = arguments.presets.split(",") if arguments.presets else every_preset()
    if missing := [name for name in reference.presets_named(readme) if name not in chosen]:
        raise ConfigError(
            f"--readme {arguments.readme} has a table of preset '{missing[0]}', which --presets leaves out: add it"
        )
    if arguments.update and not (arguments.out and Path(arguments.out).is_file()):
        raise ConfigError("--update needs --out with a file that this command wrote")
    before = Path(arguments.out).read_text("utf-8") if arguments.update else ""
    quiet = arguments.quiet or arguments.json
    sweep = [f"exp={','.join(chosen)}", "split=all", *arguments.overrides]
    experiment = Experiment.sweep(*sweep)
    if arguments.update:
        of = experiment.benchmark
        reference.require_same_topics(before, reference.head(of.name, len(of.documents), len(of.topics), of.digest))
    presets = _run(experiment, quiet)
    commands = [_command_line("run -m", sweep)]
    ablations: dict[str, Results] = {}
    for begins, (_, overrides) in {} if arguments.no_ablations else _ABLATIONS.items():
        words = [*overrides, *arguments.overrides]
        ablations[begins] = _run(Experiment.ablate(*words), quiet)
        commands.append(_command_line("ablate", words))
    path = Path(arguments.out) if arguments.out else presets.folder.parent.parent / "REFERENCE.md"
    verdicts = {begins: each.verdicts for begins, each in ablations.items()}
    tables = {_ABLATIONS[begins][0]: frame for begins, frame in verdicts.items()}
    written = reference.document(presets, tables, commands)
    write_text(path, reference.updated(before, written) if arguments.update else written)
    if arguments.readme:
        write_text(Path(arguments.readme), reference.with_presets(readme, presets))
    if arguments.effects:
        write_between(Path(arguments.effects), "effects", f"\n{reference.effects(verdicts)}\n")
    if arguments.json:
        console.print_json(
            {"reference": str(path), "folders": [str(each.folder) for each in (presets, *ablations.values())]}
        )
        return 0
    print(f"wrote {path}")
    return 0


def _command_line(command: str, words: Sequence[str]) -> str:
    """The command line, without the folders of this machine."""
    return " ".join(["ragbench", command, *(word for word in words if not word.startswith("paths."))])


def every_preset() -> list[str]:
    """The names of all experiments, the baseline first."""
    from ragbench.config import catalogue

    names = [each.name for each in catalogue.read().experiments]
    return sorted(names, key=lambda name: name != "baseline")


def _run(experiment: Experiment, quiet: bool) -> Results:
    with console.progress(quiet) as progress:
        return experiment.run(progress)
