# Everything runs inside .venv, which `make setup` builds from the lock file; `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
JOBS ?= 2
export PYTHON

BIN := .venv/bin
# What is checked: files of your own beside them are not.
CODE := apex_env experiments analysis tests
STAMP := .venv/.apex-installed
LOCK := .ci/requirements.lock
CLUSTER_LOCK := .ci/requirements-cluster.lock
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate pyproject.toml

.PHONY: help setup setup-cluster demo demo-figure test check lint format slow bench validate lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install everything into it (PYTHON=python3.12 picks the interpreter)

$(STAMP): $(LOCK) pyproject.toml .ci/setup
	@.ci/setup $(LOCK)
	@touch $@

setup-cluster: ## like setup, with the SLURM and Ray launchers too
	@.ci/setup $(CLUSTER_LOCK)
	@touch $(STAMP)

demo: $(STAMP) ## set up, then play, score and draw embedded agents
	@$(BIN)/apex demo

demo-figure: demo ## run the demo, then renew the README's figure of it in results/reference/
	@$(BIN)/python -c "from PIL import Image; \
	Image.open('results/demo/_figures/length-goal_switching-emissions.png').convert('RGB').quantize(48) \
	.save('results/reference/demo.png', optimize=True)"

test: setup check ## set up, then run lint, types, doctests and tests

check: lint ## lint, types, doctests and tests
	@echo "== pytest: doctests and tests"
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

lint: $(STAMP) ## ruff and mypy alone
	@echo "== ruff check"
	@$(BIN)/ruff check $(CODE)
	@echo "== ruff format --check"
	@$(BIN)/ruff format --check $(CODE)
	@echo "== mypy --strict"
	@$(BIN)/mypy

format: $(STAMP) ## mend what ruff can mend
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

slow: $(STAMP) ## the tests marked slow
	@$(BIN)/python -m pytest -m slow

bench: $(STAMP) ## how fast it is, in numbers (ONLY="name ..." picks benchmarks)
	@$(BIN)/python -m tests.bench $(ONLY)

validate: $(STAMP) ## check the statistics by simulation
	@$(BIN)/python -m analysis.validate

lock: $(STAMP) ## renew the lock files after a change of pyproject.toml (UPGRADE=--upgrade takes newer versions)
	@$(COMPILE) $(UPGRADE) --extra dev -o $(LOCK)
	@$(COMPILE) $(UPGRADE) --all-extras -c $(LOCK) -o $(CLUSTER_LOCK)
	@.ci/setup $(LOCK)
	@touch $(STAMP)

clean: ## remove .venv and what the tools left behind; results/ stays
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
