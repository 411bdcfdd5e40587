# make run    install and run the main job
# make test   install and run the tests
PYTHON ?= python3.11
BIN := .venv/bin

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -e ".[dev]" -c constraints.txt
	touch $@

.PHONY: install run test notebooks outputs check bench faults
install: .venv/installed

run: .venv/installed
	$(BIN)/python -m ragbench run

# Two processes, a file of tests to each in turn.
test: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist loadfile

notebooks: .venv/installed
	$(BIN)/python -m pytest --nbmake --nbmake-timeout=600 notebooks

# Writes the notebooks anew from their scripts, with outputs.
outputs: .venv/installed
	$(BIN)/jupytext --quiet --to ipynb notebooks/*.py
	$(BIN)/jupyter nbconvert --log-level WARN --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False notebooks/*.ipynb

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m pytest tests/bench --benchmark-only --benchmark-disable-gc -s

# Kills, flipped bits and full disks against real commands; about an hour.
faults: .venv/installed
	$(BIN)/python tests/faults/campaign.py
