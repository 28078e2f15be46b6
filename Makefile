# Needs Python 3.11 or newer and make. Everything is installed into $(VENV), nothing outside this folder.
ifeq ($(OS),Windows_NT)
PYTHON ?= python
VENV_BIN ?= $(VENV)/Scripts
EXE := .exe
else
PYTHON ?= python3
VENV_BIN ?= $(VENV)/bin
EXE :=
endif
VENV ?= .venv
# a file's tests stay together: they share fixtures and compiled loops
PYTEST_ARGS ?= -n 2 --dist loadfile
# tests whose coverage is counted
TESTS ?= tests src
# oldest, newest, or both
DEPENDENCIES ?= oldest newest
# --bench REGEX for some of them
ASV_ARGS ?=
# commits that asv compares
BASE ?= HEAD~1
DATA ?=
# --best builds for the best level of this processor only
WHEEL_ARGS ?=

PIP := $(VENV_BIN)/python -m pip --disable-pip-version-check
# one stamp per extra: a later run installs again only after a change of pyproject.toml
installed = $(VENV)/.installed-$(1)

.DEFAULT_GOAL := help
.PHONY: help demo gallery notebooks docs test-docs test test-all test-sklearn coverage check lint types layers schemas hooks bench asv asv-compare wheel wheel-check \
  release-check clean

help:
	@echo "make demo          fit the digits with mercer and with scikit-learn, print a summary, draw mercer-demo.png"
	@echo "make gallery       draw the figures of the notes and of the README, and write docs/gallery.md"
	@echo "make notebooks     write the notebooks of docs/tutorials from the pages beside them"
	@echo "make docs          build the documentation site into build/docs; a warning is an error"
	@echo "make test-docs     build the site, then run its tests and those of the studio in JupyterLab"
	@echo "make test          run the tests, without the slow ones   (PYTEST_ARGS='-n 2 --dist loadfile')"
	@echo "make test-all      run all tests, the slow ones too"
	@echo "make test-sklearn  run the tests of scikit-learn's contract with the oldest and the newest dependencies"
	@echo "make coverage      run the tests of make test, report the lines of Python that ran in build/coverage   (TESTS=tests/io)"
	@echo "make check         lint, format, types, layers and schemas   (make lint types layers schemas: one by one)"
	@echo "make hooks         check lint and format before each commit, types and layers before each push"
	@echo "make bench         compare with the peers                 (DATA=folder with the data sets)"
	@echo "make asv           time this commit against scikit-learn, results in build/asv   (ASV_ARGS='--bench SVC')"
	@echo "make asv-compare   time BASE and this commit, both in an environment that asv makes   (BASE=HEAD~1)"
	@echo "make wheel         build a wheel with machine code into dist/, for this Python and system (some minutes)"
	@echo "make wheel-check   build it, install it in a new environment, count what is compiled there: nothing"
	@echo "make release-check the same, then build the site and check the source distribution, its metadata and the README"
	@echo "make clean         delete the environment, caches and built files"

demo: $(call installed,report)
	$(VENV_BIN)/mercer demo

gallery: $(call installed,report)
	$(VENV_BIN)/python docs/draw_gallery.py
	$(VENV_BIN)/python docs/draw_pages.py

notebooks:
	$(PYTHON) docs/write_notebooks.py

docs: $(call installed,docs)
	$(VENV_BIN)/python -m sphinx -W --keep-going -j 2 -b html docs build/docs
	@echo "The site is in build/docs/index.html"

test-docs: $(call installed,test-docs) docs
	$(VENV_BIN)/python -m pytest tests/docs tests/studio/browser/test_jupyter.py

test: $(call installed,test)
	$(VENV_BIN)/python -m pytest $(PYTEST_ARGS) -m "not slow"

test-all: $(call installed,test)
	$(VENV_BIN)/python -m pytest $(PYTEST_ARGS)

test-sklearn:
	bash tests/oldest_and_newest.sh $(DEPENDENCIES)

# lines of Python only: compiled loops do not run as Python (pyproject.toml, [tool.coverage])
coverage: $(call installed,coverage)
	$(VENV_BIN)/python -m pytest $(PYTEST_ARGS) -m "not slow" --cov --cov-report=html --cov-report=term:skip-covered $(TESTS)

check: lint types layers schemas

lint: $(call installed,dev)
	$(VENV_BIN)/ruff check .
	$(VENV_BIN)/ruff format --check .

types: $(call installed,dev)
	$(VENV_BIN)/mypy src

layers: $(call installed,dev)
	$(VENV_BIN)/lint-imports

schemas: $(call installed,dev)
	$(VENV_BIN)/check-jsonschema --builtin-schema vendor.citation-file-format --force-filetype yaml CITATION.cff
	$(VENV_BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(wildcard .github/workflows/*.yml)
	$(VENV_BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(VENV_BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml

hooks: $(call installed,hooks)
	$(VENV_BIN)/pre-commit install --hook-type pre-commit --hook-type pre-push

bench: $(call installed,bench)
	$(VENV_BIN)/python benchmarks/kernel_svm.py $(if $(DATA),--data $(DATA))
	$(VENV_BIN)/python benchmarks/linear.py $(if $(DATA),--data $(DATA))
	$(VENV_BIN)/python benchmarks/regression.py $(if $(DATA),--data $(DATA))
	$(VENV_BIN)/python benchmarks/gaussian_process.py
	$(VENV_BIN)/python benchmarks/logistic.py
	$(VENV_BIN)/python benchmarks/pegasos.py $(if $(DATA),--data $(DATA))
	$(VENV_BIN)/python benchmarks/structured.py $(if $(DATA),--data $(DATA))
	$(VENV_BIN)/python benchmarks/selection.py $(if $(DATA),--data $(DATA))
	$(VENV_BIN)/python benchmarks/toolbox.py $(if $(DATA),--data $(DATA))

# asv describes the machine in a file of the home folder: it gets one in build
ASV = cd benchmarks/asv && HOME=$(abspath build/asv) PIP_CACHE_DIR=$(abspath build/asv/pip) $(abspath $(VENV_BIN))/asv

asv: $(call installed,asv)
	mkdir -p build/asv
	$(ASV) machine --yes
	$(ASV) run --quick --show-stderr --python=same --set-commit-hash=$(shell git rev-parse HEAD) $(ASV_ARGS)

asv-compare: $(call installed,asv)
	mkdir -p build/asv
	$(ASV) machine --yes
	$(ASV) continuous --factor 1.3 $(ASV_ARGS) $(BASE) HEAD

wheel: $(call installed,report)
	$(VENV_BIN)/python wheels/build.py $(WHEEL_ARGS)

wheel-check: wheel
	$(VENV_BIN)/python wheels/check.py

release-check: wheel-check docs
	$(VENV_BIN)/python wheels/release.py

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis mercer-demo.png
	rm -rf docs/auto_systems docs/auto_gallery docs/api/generated docs/api/backreferences docs/sg_execution_times.rst
	find src tests benchmarks docs examples -type d -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.installed-%: pyproject.toml | $(VENV_BIN)/pip$(EXE)
	$(PIP) install --quiet --editable '.[$*]'
	@touch $@

# pip is what venv installs last: where it exists the environment is complete
$(VENV_BIN)/pip$(EXE):
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	  "mercer needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + ": try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
