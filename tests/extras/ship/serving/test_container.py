"""The files in docs/container name what the service has: its options, its metrics, its paths."""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ragbench.extras.ship.commands import serve
from ragbench.extras.ship.serving.http import OPEN

FOLDER = Path(__file__).parents[4] / "docs" / "container"


def test_the_dashboard_shows_metrics_that_the_service_has(service, ask) -> None:
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    asked = {
        name for panel in panels for each in panel["targets"] for name in re.findall(r"ragbench_\w+", each["expr"])
    }
    assert ask(service, lambda client: client.post("/search", json={"query": "keys"})).status_code == 200
    text = ask(service, lambda client: client.get("/metrics")).text
    assert asked <= {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_container_starts_the_service_with_options_it_has() -> None:
    lines = (FOLDER / "Containerfile").read_text().splitlines()
    words = [json.loads(line.partition(" ")[2]) for line in lines if line.startswith(("ENTRYPOINT", "CMD"))]
    program, *call = [word for part in words for word in part]
    assert program == "ragbench"
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    parsed = parser.parse_args(call[1:])
    assert str(parsed.token_file) == "/run/secrets/tokens"
    (probe,) = re.findall(r"8000(/\w+)", next(line for line in lines if line.startswith("HEALTHCHECK")))
    assert probe in OPEN


def test_what_the_container_copies_exists() -> None:
    copied = re.findall(r"^COPY (.*) \S+$", (FOLDER / "Containerfile").read_text(), re.MULTILINE)
    contexts = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["search"]["build"][
        "additional_contexts"
    ]
    from_here = [source for source in copied if "--from" not in source]
    assert from_here == ["serve.txt ${WHEEL}"]  # which docs/serve.md says to put beside the file
    assert (FOLDER.parent.parent / "requirements" / "serve.txt").is_file()
    assert {name for source in copied for name in re.findall(r"--from=(\w+)", source)} == set(contexts)


def test_the_container_installs_nothing_by_a_name_alone() -> None:
    text = (FOLDER / "Containerfile").read_text()
    installs = re.findall(r"pip install ([^&\n]*)", text)
    assert len(installs) == 2 and all("--no-deps" in each for each in installs)
    assert "--require-hashes" in installs[0] and '"./${WHEEL}"' in installs[1] and "sha256sum --check" in text
    version = tomllib.loads((FOLDER.parent.parent / "pyproject.toml").read_text())["project"]["version"]
    assert f"ARG WHEEL=ragbench-{version}-py3-none-any.whl" in text


def test_the_files_of_the_composition_exist() -> None:
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    mounted = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])]
    assert all((FOLDER / name).is_file() for name in mounted)
    assert (FOLDER / services["search"]["build"]["dockerfile"]).is_file()
    scraped = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["search:8000"]


@pytest.mark.parametrize("name", ["grafana.yaml", "datasource.yaml"])
def test_what_is_provisioned_is_yaml(name: str) -> None:
    assert yaml.safe_load((FOLDER / name).read_text())["apiVersion"] == 1
