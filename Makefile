# Archive Fleet. `make help` lists everything.
SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 15))
PYTHON ?= $(shell for each in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
  "$$each" -c '$(SUITABLE)' 2>/dev/null && echo "$$each" && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP = $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
# The locks name everything. Without --no-deps, pip resolves a dependency that has extras past its pin, to whatever is newest.
PINNED := --require-hashes --no-deps
# What a new Python may have no wheel for, and the fleet does without. Where there is a compiler it is built.
CODECS := inflate64 pybcj pyppmd
OPTIONAL := fast $(CODECS)
WHEELS = $(shell command -v cc >/dev/null || echo --only-binary=:all:)
# The tests wait about as much as they work: for leases to run out, for answers, for processes that start.
JOBS ?= 6

# A run of the tests is hundreds of processes that import the same modules: compiled once, not by each of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all steady check format lock dist crash fuzz bench soak bare secrets image containers clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv with everything pinned, so that .venv/bin/worker works

$(STAMP): requirements/dev.txt $(OPTIONAL:%=requirements/%.txt) pyproject.toml hatch_build.py $(wildcard worker/cipher/_*.[ch])
	@python='$(PYTHON)'; "$${python:-false}" -c '$(SUITABLE)' 2>/dev/null || \
	  { echo "Python 3.11 to 3.15 is needed. Try: make PYTHON=/path/to/python3.11 install" >&2; exit 2; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make a virtual environment (on Debian: apt install $(notdir $(PYTHON))-venv)" >&2; exit 2; }
	@echo "installing into $(VENV) what requirements/dev.txt pins (a minute or so)"
	@$(PIP) $(PINNED) -r requirements/dev.txt
	@for each in $(OPTIONAL); do \
	  $(PIP) $(PINNED) $(WHEELS) -r requirements/$$each.txt 2>/dev/null || left="$$left $$(sed "s/==.*//;q" requirements/$$each.txt)"; done; \
	  test -z "$$left" || printf '%s\n' "could not be installed, and the fleet goes without:$$left" "(what that means: $(BIN)/worker doctor)"
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: install ## the whole product on an embedded PostgreSQL and a loopback Telegram
	@$(BIN)/worker demo --state .worker/demo

test: install ## all tests
	$(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 -m "not long"

test-all: install ## all tests, with every tool they can use installed by apt before (on Debian, as root or with sudo)
	@sh tests/install_tools.sh $(BIN)
	@$(BIN)/python hatch_build.py
	$(MAKE) test

steady: install ## the tests, ten times in a row, while two processes keep two cores busy [RUNS=10]
	@sh tests/steady.sh $(RUNS) $(MAKE) --no-print-directory test
RUNS ?= 10

check: install ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install ## write the code the way check wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## pin the dependencies anew (needs uv)
	@command -v uv >/dev/null || { echo "uv is needed to lock: pip install uv" >&2; exit 2; }
	uv pip compile pyproject.toml $(LOCK) -o requirements/run.txt
	uv pip compile pyproject.toml --extra embedded --group dev $(LOCK) $(CODECS:%=--no-emit-package %) -o requirements/dev.txt
	for each in $(CODECS); do echo "$$each" | uv pip compile - -c requirements/run.txt $(LOCK) -o requirements/$$each.txt || exit; done
	echo "tgcrypto>=1.2.5" | uv pip compile - $(LOCK) -o requirements/fast.txt
	echo "hatchling>=1.27" | uv pip compile - $(LOCK) -o requirements/build.txt
LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet

dist: install ## sdist and wheel into dist/, tried out in an environment of their own
	rm -rf dist
	$(BIN)/python -m hatchling build -t sdist
	$(BIN)/python -m pip --quiet --disable-pip-version-check wheel --no-index --no-deps --no-build-isolation --no-cache-dir --wheel-dir dist dist/*.tar.gz
	DIST=$(CURDIR)/dist $(BIN)/python -m pytest -q tests/integration/release

crash: install ## kill the fleet at every step and prove that nothing was lost or doubled [FULL=1 SEEDS=50 WORLD_SEEDS=300 MINUTES=5]
	CRASH_FULL=$(FULL) CRASH_SEEDS=$(SEEDS) CRASH_WORLD_SEEDS=$(WORLD_SEEDS) CRASH_MINUTES=$(MINUTES) CRASH_PAIRS=10 \
	  $(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 tests/crash
	$(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 -m long tests/model tests/integration
SEEDS ?= 50
WORLD_SEEDS ?= 300
MINUTES ?= 5

fuzz: install ## damage archives for minutes and see that nothing crashes or hangs
	FUZZ_SECONDS=0 $(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 tests/integration/archives/test_archive_fuzz.py

bench: install ## transfers side by side with other clients
	$(BIN)/python benchmarks/transfers.py $(if $(QUICK),--quick,--write docs/performance.md)

soak: install ## 3 GiB down and up, and the memory that takes
	SOAK_MIB=3072 $(BIN)/python -m pytest -q tests/integration/telegram/test_memory.py

bare: ## demo and tests on bare Debian systems, as root [SYSTEMS="trixie sid" QUICK=1 FRESH=1]
	python3 tests/bare/bare.py $(if $(QUICK),--quick) $(if $(FRESH),--fresh) --jobs $(JOBS) $(SYSTEMS)

secrets: ## make what docker-compose.yml wants to know; overwrites nothing
	@sh docs/containers/secrets.sh

image: ## build the image of the worker [BUILD_IMAGE= RUN_IMAGE=]
	@command -v docker >/dev/null || { echo "docker is needed to build the image (on Debian: apt install docker.io)" >&2; exit 2; }
	docker build --tag archive-fleet:local $(foreach each,BUILD_IMAGE RUN_IMAGE COMMIT,$(if $($(each)),--build-arg $(each)=$($(each)))) .
COMMIT ?= $(shell git describe --always --dirty --abbrev=7 --exclude='*' 2>/dev/null)

containers: install ## run the whole fleet in containers, kill a worker, prove the result, and take everything down
	PYTHONPATH=tests/containers:tests/crash $(BIN)/python tests/containers/prove.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
