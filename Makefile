# `make demo` shows the Space with real content; `make test` passes the tests. Both set everything up themselves.
PYTHON ?= python3
ENV ?= .venv
TEST_ENV ?= .venv-test
RECORD_ENV ?= .venv-record
RECORDINGS ?= sample-recordings
# A file's tests run in one of three processes, in their order; those of the browser, which mostly waits, in one.
# Linear algebra takes one thread in each: more would wait for each other.
PARALLEL = -n 3 --dist loadfile --no-loadscope-reorder
PYTEST_OPTIONS ?= $(PARALLEL) -m "not slow"
# Further requirement files for the tests: with requirements-extras.txt the cluster is tested too.
TEST_EXTRAS ?=
# Freed memory is used again instead of given back: pictures and arrays would ask the system for it each time.
KEEP_MEMORY = MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=268435456
# Compiled modules are kept, whatever the caller's shell says: many tests start processes that import them.
KEEP_COMPILED = PYTHONDONTWRITEBYTECODE=
INSTALL = -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint format bench size docs pictures record-sample clean

demo: $(ENV)/.installed
	$(ENV)/bin/arb data get --sample
	-$(ENV)/bin/arb leaderboard labels
	$(ENV)/bin/arb space serve

test: $(TEST_ENV)/.installed lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(KEEP_MEMORY) $(KEEP_COMPILED) $(TEST_ENV)/bin/python -m pytest $(PYTEST_OPTIONS)

lint: $(TEST_ENV)/.installed
	$(TEST_ENV)/bin/ruff check .
	$(TEST_ENV)/bin/ruff format --check .
	$(TEST_ENV)/bin/mypy

format: $(TEST_ENV)/.installed
	$(TEST_ENV)/bin/ruff check --fix .
	$(TEST_ENV)/bin/ruff format .

bench: $(TEST_ENV)/.installed
	$(TEST_ENV)/bin/python -m bench.metric

# Modules, lines, entries of folders, and the modules that an upload and a run of a judge pass.
size: $(TEST_ENV)/.installed
	$(TEST_ENV)/bin/python -m bench.size

# The documentation, into site/, which the Space then serves under /docs, and a wheel and `space deploy` take
# along. A dead link is an error.
docs: $(TEST_ENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(TEST_ENV)/bin/python -m mkdocs build --strict

# The README's pictures of the Space.
pictures: $(TEST_ENV)/.installed
	$(TEST_ENV)/bin/python -m docs.pictures

# Records the shipped sample again in a real Chromium and builds its dataset; stopped, it goes on where it was.
record-sample: $(RECORD_ENV)/.installed
	$(RECORD_ENV)/bin/python -m tools.sample_recorder record --out $(RECORDINGS)
	$(RECORD_ENV)/bin/python -m dataset_script build --source $(RECORDINGS) --suite sample --out dataset_script/sample/data

clean:
	rm -rf $(ENV) $(TEST_ENV) $(RECORD_ENV) .venv-audit .label-studio .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(ENV)/.installed: requirements.txt pyproject.toml
	@echo "Setting up $(ENV) (once; a few minutes)"
	$(PYTHON) -m venv $(ENV)
	$(ENV)/bin/python $(INSTALL) -e .
	@touch $@

$(TEST_ENV)/.installed: requirements.txt requirements-dev.txt $(TEST_EXTRAS)
	@echo "Setting up $(TEST_ENV) (once; a few minutes)"
	$(PYTHON) -m venv $(TEST_ENV)
	$(TEST_ENV)/bin/python $(INSTALL) -r requirements-dev.txt $(TEST_EXTRAS:%=-r %)
	@touch $@

$(RECORD_ENV)/.installed: requirements.txt pyproject.toml
	@echo "Setting up $(RECORD_ENV) (once; a few minutes)"
	$(PYTHON) -m venv $(RECORD_ENV)
	$(RECORD_ENV)/bin/python $(INSTALL) -e '.[record]'
	@touch $@
