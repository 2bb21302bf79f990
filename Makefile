# The two commands of a new user:
#   make repro [METHOD=label_completion]   environment + every method (or one) through the parallel engine
#   make test                              environment + lint + all tests
PYTHON ?= python3
METHOD ?=
WORKERS ?= 2
TABLES_ := ../shared/data/ldplc
TABLES_label_completion := ../shared/data/ldplc
TABLES_bpr := ../shared/data/bpr
DATA ?= $(TABLES_$(METHOD))
VENV := .venv
PY := $(VENV)/bin/python
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.PHONY: env repro report test lint bench study system-deps clean

env: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(PY) -m pip install --quiet --disable-pip-version-check -e '.[test]'
	$(PY) -m pip check
	touch $@

repro: env
	$(PY) -m flows $(METHOD) --workers $(WORKERS)

# The page of all methods from what has been run; a flow does this by itself at its end.
report: env
	$(PY) -m tasks.report.index reports --out reports/index.html

lint: env
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

test: lint
	$(PY) -m pytest

# Speed against peers, in CPU seconds and ratios of one run; writes reports/<method>/benchmark.json.
bench: env
	$(PY) -m tests.bench.$(or $(METHOD),label_completion)

# The long study of a method, off by default; DATA is the folder of its tables, where it needs any.
study: env
	METHODWORKS_WORKERS=$(WORKERS) $(PY) -m tasks.$(or $(METHOD),label_completion).study $(DATA) \
	  --out reports/$(or $(METHOD),label_completion)/study

# Debian packages that the project needs on a bare machine: Python and git; compilers and runtimes of SwiftCode's programs
# (without one of them, programs in its language are refused by name).
system-deps:
	command -v git && $(PYTHON) -c 'import venv, ensurepip' && command -v g++ && command -v node && command -v valgrind || \
	  { apt-get update -qq && apt-get install -y -qq git make python3 python3-venv g++ nodejs valgrind; }

clean:
	rm -rf $(VENV) .prefect .pytest_cache .ruff_cache .hypothesis
