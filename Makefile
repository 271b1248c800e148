# Archive Fleet. `make help` lists everything.
SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11; do \
  "$$each" -c '$(SUITABLE)' 2>/dev/null && echo "$$each" && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The locks name everything. Without --no-deps, pip resolves a dependency that has extras past its pin, to whatever is newest.
PINNED := --require-hashes --no-deps
# Half the cores' worth of databases is plenty: the tests wait on each other's disk, not on the CPU.
JOBS ?= 4

.DEFAULT_GOAL := help
.PHONY: help install demo test check format lock crash fuzz bench soak secrets image containers clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv with everything pinned, so that .venv/bin/worker works

$(STAMP): requirements/dev.txt requirements/fast.txt pyproject.toml hatch_build.py $(wildcard worker/cipher/_*.[ch])
	@python='$(PYTHON)'; "$${python:-false}" -c '$(SUITABLE)' 2>/dev/null || \
	  { echo "Python 3.11, 3.12 or 3.13 is needed. Try: make PYTHON=/path/to/python3.11 install" >&2; exit 2; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make a virtual environment (on Debian: apt install python3-venv)" >&2; exit 2; }
	$(PIP) $(PINNED) -r requirements/dev.txt
	@$(PIP) $(PINNED) -r requirements/fast.txt 2>/dev/null || \
	  echo "tgcrypto could not be installed (no wheel and no compiler): the slow AES path may be in use, see: worker doctor"
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: install ## the whole product on an embedded PostgreSQL and a loopback Telegram
	@$(BIN)/worker demo --state .worker/demo

test: install ## all tests
	$(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 -m "not long"

check: install ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install ## write the code the way check wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: install ## pin the dependencies anew (needs uv)
	@command -v uv >/dev/null || { echo "uv is needed to lock: pip install uv" >&2; exit 2; }
	uv pip compile pyproject.toml $(LOCK) -o requirements/run.txt
	uv pip compile pyproject.toml --extra embedded --group dev $(LOCK) -o requirements/dev.txt
	echo "tgcrypto>=1.2.5" | uv pip compile - $(LOCK) -o requirements/fast.txt
	echo "hatchling>=1.27" | uv pip compile - $(LOCK) -o requirements/build.txt
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet

crash: install ## kill the fleet at every step and prove that nothing was lost or doubled [FULL=1 SEEDS=50 MINUTES=5]
	CRASH_FULL=$(FULL) CRASH_SEEDS=$(SEEDS) CRASH_MINUTES=$(MINUTES) CRASH_PAIRS=10 \
	  $(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 tests/crash
	$(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 -m long tests/integration
SEEDS ?= 50
MINUTES ?= 5

fuzz: install ## damage archives for minutes and see that nothing crashes or hangs
	FUZZ_SECONDS=0 $(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 tests/integration/archives/test_archive_fuzz.py

bench: install ## transfers side by side with other clients
	$(BIN)/python benchmarks/transfers.py $(if $(QUICK),--quick,--write docs/performance.md)

soak: install ## 3 GiB down and up, and the memory that takes
	SOAK_MIB=3072 $(BIN)/python -m pytest -q tests/integration/telegram/test_memory.py

secrets: ## make what docker-compose.yml wants to know; overwrites nothing
	@sh containers/secrets.sh

image: ## build the image of the worker [BUILD_IMAGE= RUN_IMAGE=]
	docker build --tag archive-fleet:local $(foreach each,BUILD_IMAGE RUN_IMAGE,$(if $($(each)),--build-arg $(each)=$($(each)))) .

containers: install ## run the whole fleet in containers, kill a worker, prove the result, and take everything down
	PYTHONPATH=tests/containers:tests/crash $(BIN)/python tests/containers/prove.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
