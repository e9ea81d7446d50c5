# `make demo` shows the Space with real content; `make test` passes the tests. Both set everything up themselves.
PYTHON ?= python3
ENV ?= .venv
TEST_ENV ?= .venv-test
RECORD_ENV ?= .venv-record
LOWEST_ENV ?= .venv-lowest
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
# uv, if it is on PATH, makes environments and installs into them; else venv and pip do. `make UV=` uses pip.
UV ?= $(shell command -v uv)
# How to set up an environment: `$(call environment,FOLDER,WHAT TO INSTALL)`.
define environment
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("AgentRewardBench needs Python 3.11 or newer; $(PYTHON) is Python " + sys.version.split()[0] + ". Name a newer one: make PYTHON=python3.12")'
	@echo "Setting up $(1) (once; a few minutes)"
	$(if $(UV),$(UV) venv --quiet --seed --allow-existing --python $(PYTHON),$(PYTHON) -m venv) $(1)
	$(if $(UV),$(UV) pip install --quiet --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet --disable-pip-version-check) $(2)
	@touch $(1)/.installed
endef

.PHONY: demo test test-lowest coverage architecture lint format bench size docs pictures record-sample clean

demo: $(ENV)/.installed
	$(ENV)/bin/arb data get --sample
	-$(ENV)/bin/arb leaderboard labels
	$(ENV)/bin/arb space serve

test: $(TEST_ENV)/.installed lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(KEEP_MEMORY) $(KEEP_COMPILED) $(TEST_ENV)/bin/python -m pytest $(PYTEST_OPTIONS)

# The tests without the browser, with the oldest versions that pyproject.toml allows. Needs uv and Python 3.11.
# Older clients of the Hub do not retry the list of a repository's files; the command then says to try again.
# Golden files and the version of Gradio in the card are those of the newest libraries.
# Older versions of datasets abort at the end of a program that stopped in the middle of a stream.
test-lowest: $(LOWEST_ENV)/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(KEEP_MEMORY) $(KEEP_COMPILED) $(LOWEST_ENV)/bin/python -m pytest $(PYTEST_OPTIONS) --ignore=tests/e2e --ignore=tests/bench --ignore=tests/test_golden.py \
		--deselect=tests/dataset_script/sources/test_hub.py::test_a_fault_that_passes_is_waited_for \
		--deselect=tests/space/deploy/test_deployer.py::test_the_card_tells_the_hub_how_to_run_it_and_to_sign_people_in \
		--deselect=tests/dataset_script/test_streaming.py::test_a_resharded_stream_of_a_large_file_reads_a_row_group_at_a_time

# The share of lines that the tests of `make test` execute, without processes that they start; much faster on
# Python 3.12 and later.
coverage: $(TEST_ENV)/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(KEEP_MEMORY) $(KEEP_COMPILED) $(TEST_ENV)/bin/python -m pytest $(PYTEST_OPTIONS) --cov --cov-report=term:skip-covered

# For pre-commit: the order of packages and the words of the code.
architecture: $(TEST_ENV)/.installed
	$(TEST_ENV)/bin/python -m pytest -q tests/test_architecture.py

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
	rm -rf $(ENV) $(TEST_ENV) $(RECORD_ENV) $(LOWEST_ENV) lowest.txt .venv-audit .label-studio .openapi-client .inspect .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(ENV)/.installed: pyproject.toml
	$(call environment,$(ENV),--editable '.[space]')

$(TEST_ENV)/.installed: requirements.txt requirements-dev.txt $(TEST_EXTRAS)
	$(call environment,$(TEST_ENV),-r requirements-dev.txt $(TEST_EXTRAS:%=-r %))

$(RECORD_ENV)/.installed: pyproject.toml
	$(call environment,$(RECORD_ENV),--editable '.[record]')

# The oldest versions that pyproject.toml allows, of Python too: those of the base, and of the rest those that go
# with them.
$(LOWEST_ENV)/.installed: PYTHON = python3.11
$(LOWEST_ENV)/.installed: pyproject.toml requirements.txt requirements-dev.txt
	uv pip compile --quiet --python-version 3.11 --resolution lowest-direct pyproject.toml --output-file lowest.txt
	$(call environment,$(LOWEST_ENV),--resolution lowest-direct --override lowest.txt -r requirements-dev.txt)
