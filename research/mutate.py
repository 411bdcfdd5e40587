"""Break the code behind every row of research/conformance.yaml, and see the test fail that proves the row.

python -m research.mutate             runs the mutations of all rows (about an hour)
python -m research.mutate p1-top-3    runs those of the rows that are named
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragbench.boundary.yaml import read_yaml_file
from research.conformance import Requirement, read

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "research" / "mutations.yaml"


@dataclass(frozen=True)
class Mutation:
    """The text `before` of a file becomes `after`; then `test`, a function in a file of the row's tests, must fail."""

    row: str
    file: str
    before: str
    after: str
    test: str


def read_mutations() -> list[Mutation]:
    """The mutations of `mutations.yaml`."""
    return [
        Mutation(row, each["in"], each["from"], each["to"], each["fails"]) for row, each in read_yaml_file(FILE).items()
    ]


def problems(rows: Sequence[Requirement], mutations: Sequence[Mutation]) -> list[str]:
    """A sentence for each row with tests that has no mutation, and for each mutation that cannot be tried."""
    by_id = {row.id: row for row in rows}
    tried = {mutation.row for mutation in mutations}
    result = [f"{row.id}: add a mutation to {FILE.name}" for row in rows if row.tests and row.id not in tried]
    for mutation in mutations:
        path = ROOT / mutation.file
        if mutation.row not in by_id:
            result.append(f"{mutation.row}: no row of conformance.yaml has this id")
        elif _test_of(mutation, by_id[mutation.row]) is None:
            result.append(f"{mutation.row}: no file of its tests has {mutation.test}")
        elif not path.is_file() or (count := path.read_text(encoding="utf-8").count(mutation.before)) == 0:
            result.append(f"{mutation.row}: {mutation.file} does not have {mutation.before!r}")
        elif count > 1:
            result.append(f"{mutation.row}: {mutation.file} has {mutation.before!r} {count} times")
    return result


def _test_of(mutation: Mutation, row: Requirement) -> str | None:
    """The test that must fail, as pytest names it; None if no file of the row has it."""
    for file in row.tests:
        if re.search(rf"^def {re.escape(mutation.test)}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE):
            return f"{file}::{mutation.test}"
    return None


def _outcome(copy: Path, tests: Sequence[str]) -> int:
    """Pytest's exit code for tests in a copy of the project: 0 if all passed, 1 if one failed."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode


def _verdict(copy: Path, mutation: Mutation, test: str) -> str:
    """`caught`, `SURVIVES`, or `BROKEN` if the test could not even be collected."""
    path = copy / mutation.file
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace(mutation.before, mutation.after), encoding="utf-8")
    try:
        return {0: "SURVIVES", 1: "caught"}.get(_outcome(copy, [test]), "BROKEN")
    finally:
        path.write_text(before, encoding="utf-8")


def main(names: Sequence[str]) -> int:
    """Try the mutations of all rows, or of those that are named; print a line each.

    Returns 1 if a mutation is not caught, 2 if a row has none or one cannot be tried.
    """
    rows = {row.id: row for row in read()}
    unknown = [name for name in names if name not in rows]
    found = [*(f"{name}: no such row" for name in unknown), *problems(list(rows.values()), read_mutations())]
    found = [each for each in found if not names or each.partition(":")[0] in names]
    if found:
        print("\n".join(found), file=sys.stderr)
        return 2
    chosen = [each for each in read_mutations() if not names or each.row in names]
    tests = {each.row: str(_test_of(each, rows[each.row])) for each in chosen}
    caught = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "*.egg-info"))
        if _outcome(copy, sorted(set(tests.values()))) != 0:
            print("a named test fails without a mutation: run the tests first", file=sys.stderr)
            return 2
        for mutation in chosen:
            verdict = _verdict(copy, mutation, tests[mutation.row])
            caught += verdict == "caught"
            change = f"{mutation.before!r} -> {mutation.after!r}"
            print(f"{verdict:8} {mutation.row}: {change} in {mutation.file}", flush=True)
    print(f"{caught} of {len(chosen)} mutations make the named test fail")
    return int(caught < len(chosen))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
