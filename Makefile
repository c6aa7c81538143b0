# `make demo` and `make test` each set up all they need in a virtual environment of their own.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
# The first Python that is new enough; name another with `make PYTHON=python3.12 ...`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
export PATH := $(abspath $(BIN)):$(PATH)
export PYTHONNOUSERSITE := 1

.PHONY: setup demo test test-all notebooks release site attack bench lint clean

setup: $(VENV)/ready

$(VENV)/ready: install.py pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found. Install it, or name it: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) install.py --folder $(VENV) --extra test
	@touch $@

demo: setup
	$(BIN)/autograder demo

# Each file is run by one process, in the order of tests/conftest.py; there are as many as cores,
# since one more would import and collect everything once more.
SPREAD := -n $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 1) --dist loadfile --no-loadscope-reorder

# What Python compiles is written by tests/conftest.py while tests are collected, and only read by
# the tests themselves: some of them write a module anew within one second.
test test-all: export PYTHONDONTWRITEBYTECODE := 1

test: setup
	$(BIN)/python -m pytest -m "not slow" $(SPREAD)

test-all: setup
	$(BIN)/python -m pytest $(SPREAD)

notebooks: setup
	$(BIN)/autograder build

release: setup
	$(BIN)/autograder release

# The site, for which more packages are needed; it is opened from its folder, without a server.
site: $(VENV)/site
	$(BIN)/python tools/site/build.py

$(VENV)/site: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt sphinx myst-nb furo
	@touch $@

attack: setup
	$(BIN)/python -m tests.attacks.table

bench: setup
	@for b in classes shapes sandbox weights notebooks; do echo "== $$b"; $(BIN)/python -m benchmarks.$$b; done

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

clean:
	rm -rf $(VENV) build demo .pytest_cache .ruff_cache
