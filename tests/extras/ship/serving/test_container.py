"""The files in docs/container agree with the service and with the repository."""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from pathlib import Path

import yaml

from ragbench.extras.ship.commands import serve

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "docs" / "container"


def test_container_starts_the_service_with_options_it_has() -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", (FOLDER / "Containerfile").read_text(), re.MULTILINE)
    program, command, *options = json.loads(entry)
    assert (program, command) == ("ragbench", "serve")
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    parsed = parser.parse_args(options)
    secrets = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["search"]["secrets"]
    assert str(parsed.token_file) == f"/run/secrets/{secrets[0]}"


def test_container_copies_files_that_exist() -> None:
    copied = re.findall(r"^COPY (.*) \S+$", (FOLDER / "Containerfile").read_text(), re.MULTILINE)
    build = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["search"]["build"]
    from_here = [source for source in copied if "--from" not in source]
    assert from_here == ["serve.txt ${WHEEL}"]  # which docs/serve.md says to put beside the file
    assert (ROOT / "requirements" / "serve.txt").is_file()
    contexts = {name for source in copied for name in re.findall(r"--from=(\w+)", source)}
    assert contexts == set(build["additional_contexts"])
    assert (FOLDER / build["dockerfile"]).is_file()


def test_container_installs_only_pinned_packages() -> None:
    text = (FOLDER / "Containerfile").read_text()
    locked, wheel = re.findall(r"pip install ([^&\n]*)", text)
    assert "--no-deps" in locked and "--require-hashes" in locked
    assert "--no-deps" in wheel and '"./${WHEEL}"' in wheel and "sha256sum --check" in text
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"ARG WHEEL=ragbench-{version}-py3-none-any.whl" in text
