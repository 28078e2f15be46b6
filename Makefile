# Needs Python 3.11 or newer and make. Everything is installed into $(VENV), nothing outside this folder.
PYTHON ?= python3
VENV ?= .venv
# a file's tests stay together: they share fixtures and compiled loops
PYTEST_ARGS ?= -n 2 --dist loadfile
DATA ?=
# --best builds for the best level of this processor only
WHEEL_ARGS ?=

PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
# one stamp per extra: a later run installs again only after a change of pyproject.toml
installed = $(VENV)/.installed-$(1)

.DEFAULT_GOAL := help
.PHONY: help demo gallery docs test test-all test-sklearn check bench wheel wheel-check release-check clean

help:
	@echo "make demo          fit the digits with mercer and with scikit-learn, print a summary, draw mercer-demo.png"
	@echo "make gallery       draw the figures of the notes and of the README, and write docs/gallery.md"
	@echo "make docs          build the documentation site into build/docs; a warning is an error"
	@echo "make test          run the tests, without the slow ones   (PYTEST_ARGS='-n 2 --dist loadfile')"
	@echo "make test-all      run all tests, the slow ones too"
	@echo "make test-sklearn  run the tests of scikit-learn's contract with the oldest and the newest dependencies"
	@echo "make check         lint, format, types and layers"
	@echo "make bench         compare with the peers                 (DATA=folder with the data sets)"
	@echo "make wheel         build a wheel with machine code into dist/, for this Python and system (some minutes)"
	@echo "make wheel-check   build it, install it in a new environment, count what is compiled there: nothing"
	@echo "make release-check the same, then build the site and check the source distribution, its metadata and the README"
	@echo "make clean         delete the environment, caches and built files"

demo: $(call installed,report)
	$(VENV)/bin/mercer demo

gallery: $(call installed,report)
	$(VENV)/bin/python docs/draw_gallery.py
	$(VENV)/bin/python docs/draw_pages.py

docs: $(call installed,docs)
	$(VENV)/bin/python -m sphinx -W --keep-going -j 2 -b html docs build/docs
	@echo "The site is in build/docs/index.html"

test: $(call installed,test)
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS) -m "not slow"

test-all: $(call installed,test)
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

test-sklearn:
	tests/oldest_and_newest.sh

check: $(call installed,dev)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy src
	$(VENV)/bin/lint-imports

bench: $(call installed,bench)
	$(VENV)/bin/python benchmarks/kernel_svm.py $(if $(DATA),--data $(DATA))
	$(VENV)/bin/python benchmarks/linear.py $(if $(DATA),--data $(DATA))
	$(VENV)/bin/python benchmarks/regression.py $(if $(DATA),--data $(DATA))
	$(VENV)/bin/python benchmarks/gaussian_process.py
	$(VENV)/bin/python benchmarks/logistic.py
	$(VENV)/bin/python benchmarks/pegasos.py $(if $(DATA),--data $(DATA))
	$(VENV)/bin/python benchmarks/structured.py $(if $(DATA),--data $(DATA))
	$(VENV)/bin/python benchmarks/selection.py $(if $(DATA),--data $(DATA))

wheel: $(call installed,report)
	$(VENV)/bin/python wheels/build.py $(WHEEL_ARGS)

wheel-check: wheel
	$(VENV)/bin/python wheels/check.py

release-check: wheel-check docs
	$(VENV)/bin/python wheels/release.py

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis mercer-demo.png
	rm -rf docs/auto_systems docs/auto_gallery docs/api/generated docs/api/backreferences docs/tutorials/generated docs/sg_execution_times.rst
	find src tests benchmarks docs examples -type d -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.installed-%: pyproject.toml | $(VENV)/bin/pip
	$(PIP) install --quiet --editable '.[$*]'
	@touch $@

# pip is what venv installs last: where it exists the environment is complete
$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	  "mercer needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + ": try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
