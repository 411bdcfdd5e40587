# make run        install and run the main job
# make lab        install and open JupyterLab on the notebooks
# make test       install and run the default tests
# make test-all   install and run all tests, as CI does
PYTHON ?= python3
BIN := .venv/bin

# TORCH_INDEX=URL takes PyTorch from another index, such as that of its CPU builds.
INSTALL := tools/install $(BIN)/python

# What the main job needs: every file by its digest, without PyTorch.
.venv/runs: pyproject.toml requirements/run.txt requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "ragbench needs Python 3.11 or newer, not $$($(PYTHON) -V 2>&1): run make PYTHON=python3.13 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv .venv
	$(INSTALL) --no-deps --require-hashes -r requirements/run.txt
	$(INSTALL) --no-deps -e .
	$(BIN)/python tools/lucene_part.py
	touch $@

# JupyterLab on the notebooks, without tests and PyTorch; LAB="--no-browser --port 8889" passes options on.
.venv/lab: .venv/runs constraints.txt
	$(INSTALL) -e ".[notebooks]" -c constraints.txt
	touch $@

# Everything else on top: tests, notebooks, PyTorch.
.venv/installed: .venv/runs constraints.txt
	$(if $(TORCH_INDEX),$(INSTALL) torch==2.13.0 --index-url $(TORCH_INDEX))
	$(INSTALL) -e ".[dev]" -c constraints.txt
	touch $@

.PHONY: install run lab test test-slow test-all notebooks outputs check bench faults research-test screens screenshots screenshot site
install: .venv/installed

run: .venv/runs
	$(BIN)/python -m ragbench run

# Stores the data of a figure, not the library that draws it. No comment on the line itself: its blanks would be of the value.
lab outputs: export PLOTLY_RENDERER = plotly_mimetype
lab: .venv/lab
	$(BIN)/jupyter lab $(LAB) notebooks

# Tests start many processes: compiled modules are kept, also where PYTHONDONTWRITEBYTECODE is set.
unexport PYTHONDONTWRITEBYTECODE

# Two processes, a file of tests to each in turn; SEED=<number> runs them in that random order. The last lines have the
# CPU time of all of them.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile $(if $(SEED),-p randomly --randomly-seed=$(SEED))

test: .venv/installed
	$(PYTEST)

# What `make test` skips.
test-slow: .venv/installed
	$(PYTEST) -m slow

test-all: .venv/installed
	$(PYTEST) -m ""

notebooks: .venv/installed
	$(BIN)/python -m pytest -p nbmake --nbmake --nbmake-timeout=600 -n 2 --dist loadfile notebooks

# Writes the notebooks anew from their scripts, with outputs, and pictures of figures (needs chromium). One of them:
# make outputs NOTEBOOKS=notebooks/01_first_run.
outputs: export PYTHONWARNINGS = ignore
outputs: NOTEBOOKS = $(basename $(wildcard notebooks/*.py))
outputs: .venv/installed
	$(BIN)/jupytext --quiet --to ipynb $(NOTEBOOKS:=.py)
	$(BIN)/jupyter nbconvert --log-level WARN --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False $(NOTEBOOKS:=.ipynb)
	$(BIN)/python -m tools.notebook_pictures $(NOTEBOOKS:=.ipynb)

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The programs of research/, which make figures of the documentation. Benchmarks are only imported. CI runs those that are
# not slow: make research-test MARKS="not slow".
research-test: MARKS =
research-test: .venv/installed
	$(PYTEST) -m "$(MARKS)" research

bench: .venv/installed
	$(BIN)/python -m pytest research/bench --benchmark-only --benchmark-disable-gc -s

# Kills, flipped bits, full disks and bad inputs against real commands; bad contents through every door; refreshes under
# load and kills of refreshes; the same bytes under other seeds, threads and orders. About two hours.
faults: .venv/installed
	$(BIN)/python -m research.faults.campaign
	$(BIN)/python -m research.faults.concurrent_refresh
	$(BIN)/python -m research.faults.determinism
	$(BIN)/python -m research.faults.cluster

# The pictures of docs/read-results.md, from a small ablation in a folder of its own; needs chromium and its driver.
screenshots: .venv/installed
	$(BIN)/python -m tools.studio_screenshots $${TMPDIR:-/tmp}/ragbench-screenshots docs/images

# The picture of MLflow in README, from runs in a folder of its own; some minutes.
screenshot: .venv/installed
	$(BIN)/python -m tools.mlflow_screenshot $${TMPDIR:-/tmp}/ragbench-mlflow docs/images/mlflow.png

# The screens of the first hour and the first picture of README, from real runs; some minutes of a quiet machine.
screens: .venv/installed
	$(BIN)/python -m tools.screens

# The documentation as a website in `site/`; a link that leads nowhere fails. The same files, at the same places.
site: .venv/installed
	$(BIN)/pip install --quiet -e ".[docs]" -c constraints.txt
	rm -rf site build/site && mkdir -p build/site
	cp -r --parents README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md docs \
		qrels/*/DATASHEET.md requirements/run.txt build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
