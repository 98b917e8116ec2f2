# Every target sets up what it needs by itself: Python 3.11+ and make are enough for all but `e2e`,
# which needs Go for its control plane. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := .cache/demo
# xdist's workers pay off from two cores on. Each begins with half of the tests in their order, so
# that what a folder's tests share is made once, and helps the other out when it is done.
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help install demo test test-full test-all nightly lint types format pages e2e bench lock release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tracekit needs Python 3.11 or newer: run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'

$(VENV)/.package: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.package
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $@

$(VENV)/.e2e: pyproject.toml $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group e2e
	touch $@

# A release writes its version into pyproject.toml: the next one must not install for that.
$(VENV)/.release: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	touch $@

install: $(VENV)/.package ## make .venv with the tracekit command in it

demo: $(VENV)/.package ## replay a real trace, then the same one with a lie planted in it
	@rm -rf $(DEMO)
	@$(BIN)/tracekit demo -o $(DEMO)

test: $(VENV)/.dev ## run the tests: every kind of lie, gate, version and verb once
	$(PYTEST) -n auto --dist worksteal -m 'not e2e and not full and not nightly'

test-full: $(VENV)/.dev ## run what `make test` leaves out: the same on all records, long waits
	$(PYTEST) -n auto --dist worksteal -m 'full and not e2e and not nightly'

nightly: $(VENV)/.dev ## search for crashes with random input, for a quarter of an hour
	$(PYTEST) -n auto --dist worksteal -m nightly

test-all: test test-full ## run both

lint: $(VENV)/.dev ## run ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

pages: $(VENV)/.dev ## write the documents that follow from the code
	$(BIN)/python docs/generate.py
	$(BIN)/python -m tracekit.trace.format.document docs/trace-format.md
	$(BIN)/python -m tests.docs.mistakes

e2e: $(VENV)/.e2e ## run the tests against a real control plane (builds it with Go when it is not cached)
	$(PYTEST) -n 2 --dist loadfile -m e2e tests/e2e

bench: $(VENV)/.dev ## measure speed and memory
	$(BIN)/python -m bench

LOCK := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
  --generate-hashes --no-annotate --no-emit-index-url --custom-compile-command 'make lock'

lock: $(VENV)/.release ## resolve again what image and CI install, with hashes
	$(LOCK) pyproject.toml -o packaging/requirements.lock
	$(LOCK) packaging/build.in -o packaging/build.lock

release: $(VENV)/.release ## make dist of VERSION: wheel, sdist, chart, SBOM, checksums; no network
	@$(BIN)/python packaging/release.py $(VERSION)

clean: ## remove everything that make made
	rm -rf $(VENV) .cache dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
