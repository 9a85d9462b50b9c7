PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# One process for each core. Each takes its tests in order, so that most modules set up what they share only once.
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses 4 --dist worksteal

# Chosen by scripts/choose_readout.py on folds of the training set: with the usual 1280, so few samples leave probabilities
# that are too modest.
SURE := 5120

.DEFAULT_GOAL := help
.PHONY: help demo test slow embedded docs dist clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

demo: $(VENV)/runtime.stamp  ## install into .venv, train on scikit-learn's digits, print the result
	$(BIN)/cavity train --dataset digits --readout-samples $(SURE) --out runs/demo --force
	@echo
	@echo "Look at runs/demo/report.html: learning curves, how honest the probabilities are, and the mistakes. Then try"
	@echo "    $(BIN)/cavity evaluate runs/demo"
	@echo "    $(BIN)/cavity export runs/demo --out digits.html    # draw a digit in the browser"
	@echo "docs/start.md goes on from here."

test: $(VENV)/dev.stamp  ## install with the dev extras, then lint, format check, types and tests
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-logo
	$(PYTEST) --ignore tests/embedded

slow: $(VENV)/dev.stamp  ## the tests marked slow, which `make test` leaves out
	$(PYTEST) -m slow --timeout 3600 --ignore tests/embedded

embedded: $(VENV)/dev.stamp  ## exported C on emulated boards; installs compilers and emulators where it may
	scripts/install_embedded.sh
	$(PYTEST) tests/embedded -m "slow or not slow"

# Not --quiet: mkdocs would not count the warnings that --strict is about.
docs: $(VENV)/docs.stamp  ## the documentation site, into site/; its code blocks are run by `make test`
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

dist: $(VENV)/dist.stamp  ## wheels and source into dist/, checked, and installed into empty environments
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m build --no-isolation --outdir dist --wheel packaging/runtime
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python scripts/check_dist.py dist

clean:  ## remove .venv, caches and build output
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
	find . -name __pycache__ -prune -exec rm -rf {} +

# `python -m venv` is run again on an existing .venv on purpose: it mends one that was cut short or lost its interpreter.
$(VENV)/runtime.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	@touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[dev]"
	@touch $(VENV)/runtime.stamp $@

$(VENV)/docs.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[docs]"
	@touch $(VENV)/runtime.stamp $@

$(VENV)/dist.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e ".[dist]"
	@touch $(VENV)/runtime.stamp $@
