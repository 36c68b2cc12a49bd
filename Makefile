# `make` alone lists the commands.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Tests and figures start hundreds of processes. Without bytecode each compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test deep check format bench scale audit pages docs mutants clean

help:  ## List the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) install --constraint constraints.txt --editable '.[test]'
	@touch $@

$(VENV)/.docs: $(VENV)/.test
	$(PIP) install --constraint constraints.txt --editable '.[docs]'
	@touch $@

venv: $(VENV)/.test  ## Build .venv with everything that the tests need

demo: $(VENV)/.core  ## Publish the shipped flights and cities, and write a report to demo/
	$(BIN)/sfumato demo --out demo

test: $(VENV)/.test  ## Run the tests (about 10 minutes on two cores)
	$(BIN)/python -m pytest -m "not deep" -n 2 --dist worksteal -q

deep: $(VENV)/.docs  ## Run the long tests, and write their figures to docs/evidence/
	$(BIN)/python -m pytest -m deep -q -rA --evidence=docs/evidence

check: $(VENV)/.test  ## Check format, lint, types, and which module may import which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.test  ## Format the code in place
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.core  ## Measure speed beside comparable libraries (about an hour; two minutes with QUICK=--quick)
	$(BIN)/python -m benchmarks --peers $(QUICK) --out $(if $(QUICK),bench,docs/evidence)

scale: $(VENV)/.test  ## Measure answers on all cores beside DuckDB and Polars, and write docs/scale.md (ten minutes)
	$(BIN)/python -m benchmarks cores --peers $(QUICK) --out docs/evidence
	$(BIN)/python -m tools.figures

audit: $(VENV)/.core  ## Measure what every mechanism spends, and write docs/evidence/audit.json
	$(BIN)/sfumato audit --quick --json > docs/evidence/audit.json

.mutants/.ready: $(VENV)/.test
	$(PYTHON) -m venv .mutants
	.mutants/bin/python -m pip --disable-pip-version-check --quiet install 'cosmic-ray>=8.4'
	@touch $@

mutants: .mutants/.ready  ## Plant faults where privacy rests, and count those that a fast test finds (some hours)
	.mutants/bin/python tools/mutants.py --python $(BIN)/python --out docs/evidence

pages: $(VENV)/.test  ## Write the pages that are generated
	$(BIN)/python tools/cli_page.py
	$(BIN)/python -m tools.figures

docs: $(VENV)/.docs pages  ## Write the pages that are generated, and build the site in site/
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -E -b html -d site/.doctrees docs site/html
	@echo "Open site/html/index.html"

clean:  ## Remove what was built
	rm -rf $(VENV) .mutants .peers bench demo report.html site dist build .mypy_cache .ruff_cache .pytest_cache
