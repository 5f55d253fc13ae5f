# One environment in .venv serves every target: `make demo` installs the core into it, the checks add the dev extras.
# A stamp file says what is installed, so a target whose stamp is newer than both files below installs nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt
SOURCES := $(wildcard pipeflow tests examples scripts benchmarks conftest.py)
DOMAIN := tests/rl tests/algorithms tests/typing tests/docs tests/reliability

# No usage statistics, no look-up of a newer release, no colour codes in a log file.
export RAY_USAGE_STATS_ENABLED := 0
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help venv demo test slow lint types mypy pyright docs format bench clean test-domain test-rest

help:  ## show this list
	@grep -E '^[a-z]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

$(VENV)/core.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp
	$(INSTALL) -e '.[dev,docs]'
	@touch $@

venv: $(VENV)/dev.stamp  ## install everything that the checks need into .venv

demo: $(VENV)/core.stamp  ## train PPO on CartPole in this process until it is solved
	$(BIN)/pipeflow train ppo --env CartPole-v1 --engine inline --until-return 475 --seed 1

test: $(VENV)/dev.stamp  ## every check but the slow tests; this is what CI runs
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint types docs
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-domain test-rest
	$(BIN)/python -m pytest -m "not slow and ray"

# Two halves in two processes. The tests with Ray, whose workers give way to every other process, come after them.
test-domain: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m "not slow and not ray" $(DOMAIN)

test-rest: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m "not slow and not ray" $(addprefix --ignore=,$(DOMAIN))

slow: $(VENV)/dev.stamp  ## the tests that train to a result, use Ray at length, or wait for timeouts
	$(INSTALL) -e '.[dev,envpool,tune,video]'
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/dev.stamp  ## formatting, lint rules, and which layer may import which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: mypy pyright  ## mypy and pyright

mypy: $(VENV)/dev.stamp
	$(BIN)/mypy --strict $(SOURCES)

pyright: $(VENV)/dev.stamp
	$(BIN)/pyright --pythonpath $(BIN)/python $(SOURCES)

docs: $(VENV)/dev.stamp  ## build the documentation site into build/site; a warning fails
	$(BIN)/properdocs build

format: $(VENV)/dev.stamp  ## rewrite the sources as `make lint` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev.stamp  ## run every benchmark, one after the other
	$(INSTALL) -e '.[dev,bench]'
	set -e; for program in benchmarks/bench_*.py; do echo "== $$program"; $(BIN)/python "$$program"; done
	$(BIN)/python benchmarks/documents.py

clean:  ## remove the environment and what the tools left
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
