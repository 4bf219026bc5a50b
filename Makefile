# Everything here sets itself up: the only needs are make and Python 3.11 or later. Tests on Spark need Java 17, those on
# PostgreSQL its programs; both are skipped without, and in CI a skip fails.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
PYTEST_ARGS ?=
FAST ?=

VENV := .venv
BIN := $(VENV)/bin
NEAREST = $(if $(FAST),$$($(BIN)/python tests/nearest.py))
BENCH_VENV := .venv-bench-$(ROOM)
PIP_ARGS := install -qq --disable-pip-version-check -c constraints.txt

# Environments carry their recipe in the name of a stamp file, so that a second run finds it and starts at once.
# The place and the interpreter make the environment; pyproject.toml and constraints.txt make what is in it.
checksum = $(shell { $(1); } 2>/dev/null | cksum | cut -d ' ' -f 1)
PLACE_ID := $(call checksum,pwd; $(PYTHON) --version)
DEPS_ID := $(PLACE_ID)-$(call checksum,cat pyproject.toml constraints.txt)
MADE := .made-$(PLACE_ID)
READY := .ready-$(DEPS_ID)
PEERS := benchmarks/requirements-$(ROOM).txt
BENCH_READY := $(READY)-$(call checksum,cat $(PEERS))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check bench build clean

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/$(READY) ## ask a small clinic, train a model, then tell how privacy loss adds up; files go to demo-output/
	@$(BIN)/python -m sitr demo --output demo-output

# A book syncs every step to the disk, and most of its tests wait for that. No test cuts the power, so they write to a
# folder in memory where there is room for it.
test: $(VENV)/$(READY) ## run all tests and doctests (PYTEST_ARGS="-k bracket" to choose, FAST=1 for those near a change)
	@room=$$(df -Pk /dev/shm 2>/dev/null | awk 'END {print $$4 + 0}'); \
	  test "$$room" -gt 2000000 && test -w /dev/shm && memory=/dev/shm; \
	  folder=$$(mktemp -d "$${TMPDIR:-$${memory:-/tmp}}/sitr-tests-XXXXXX") && trap 'rm -rf "$$folder"' EXIT && \
	  TMPDIR="$$folder" $(BIN)/python -m pytest -n auto --maxprocesses=4 --dist loadgroup $(NEAREST) $(PYTEST_ARGS)

check: $(VENV)/$(READY) ## ruff, mypy and import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: ## ours beside the peers, in one run: make bench ROOM=accounting
	@test -n "$(ROOM)" && test -f "benchmarks/$(ROOM).py" || { \
	  echo "Say which room to measure: make bench ROOM=<name>, where benchmarks/<name>.py exists."; exit 2; }
	@$(MAKE) -s $(BENCH_VENV)/$(BENCH_READY)
	@$(BENCH_VENV)/bin/python benchmarks/$(ROOM).py

build: $(VENV)/$(READY) ## build the wheel, install it in a clean environment and run it there
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	@clean=$$(mktemp -d) && trap 'rm -rf "$$clean"' EXIT && \
	  $(PYTHON) -m venv "$$clean/venv" && \
	  "$$clean/venv/bin/python" -m pip $(PIP_ARGS) dist/*.whl && \
	  cd "$$clean" && venv/bin/sitr --version && venv/bin/sitr doctor
	@echo "sitr: built and tried:"; ls dist

clean: ## remove environments, caches and everything make wrote
	@rm -rf .venv .venv-bench-* build dist demo-output
	@rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/$(MADE) $(BENCH_VENV)/$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "sitr needs Python 3.11 or later; '$(PYTHON)' says: $$($(PYTHON) --version 2>&1)"; \
	  echo "With a later one at hand: make test PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python cannot make environments. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "sitr: making the environment $(@D) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(@D)
	@touch $@

# hatchling comes first, from the same pins, so that sitr itself is built with it and fetches nothing more; setuptools and
# wheel too, as PySpark comes as source.
$(VENV)/$(READY): $(VENV)/$(MADE)
	@echo "sitr: installing the packages pinned in constraints.txt (about a minute)"
	@rm -f $(@D)/.ready-*
	@$(BIN)/python -m pip $(PIP_ARGS) hatchling setuptools wheel
	@$(BIN)/python -m pip $(PIP_ARGS) --no-build-isolation -e '.[plot,postgresql,spark,polars,compare,torch,dev]'
	@touch $@
	@echo "sitr: ready; the next run starts at once"

$(BENCH_VENV)/$(BENCH_READY): $(BENCH_VENV)/$(MADE)
	@echo "sitr: installing sitr and the peers of $(PEERS)"
	@rm -f $(@D)/.ready-*
	@$(@D)/bin/python -m pip $(PIP_ARGS) hatchling setuptools wheel
	@$(@D)/bin/python -m pip $(PIP_ARGS) --no-build-isolation -e . -r $(PEERS)
	@touch $@
	@echo "sitr: ready; the next run starts at once"
