# make repro [METHOD=…]   environment + every method (or one) through the parallel engine
# make test               environment + lint + tests
PYTHON ?= python3
METHOD ?=
WORKERS ?= 2
PY := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: repro test lint env

env: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(PY) -m pip install --quiet --disable-pip-version-check -e '.[test]'
	$(PY) -m pip check
	touch $@

repro: env
	$(PY) -m flows $(METHOD) --workers $(WORKERS)

lint: env
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

test: lint
	$(PY) -m pytest
