# make run    install and run the main job
# make test   install and run the tests
PYTHON ?= python3.11
BIN := .venv/bin

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -e ".[dev]" -c constraints.txt
	touch $@

.PHONY: install run test check bench
install: .venv/installed

run: .venv/installed
	$(BIN)/python -m ragbench run

test: .venv/installed
	$(BIN)/python -m pytest

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m pytest tests/bench --benchmark-only --benchmark-disable-gc -s
