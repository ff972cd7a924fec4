# Everything happens in .venv. `make` alone lists the targets.
#
#   PYTHON=python3.12   the Python to build .venv with (3.11 or newer; found by itself otherwise)
#   ARGS='-k journal'   for `make test` and `make test-all`: more pytest arguments
#   COVERAGE=1          for `make test`: measure branch coverage, as `make test-all` does
#   WORKERS=4           for `make test`: how many processes (two for each core otherwise)
#   BENCH=name          for `make bench`: only bench/bench_<name>.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup demo test test-all check hostile bench honest format docs wheel audit constraints clean

BIN := .venv/bin
PY := $(BIN)/python
# What the demo needs, and what development needs besides.
SETUP := .venv/.setup
TOOLS := .venv/.setup-development

# Two for each core: half of the time, tests wait for programs that they have started.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 2)))
PYTEST := $(PY) -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal
COVERED = $(if $(COVERAGE),--cov --cov-append --cov-report= --cov-fail-under=0)
# Without --quiet, which would hide warnings from --strict too. The variable turns off an advertisement.
DOCS := NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict
CHECKED := src tests scripts $(if $(wildcard bench/*.py),bench)
# The tests start hundreds of Pythons; where bytecode is not to be kept, each would compile everything anew.
export PYTHONDONTWRITEBYTECODE :=
# Otherwise ruff keeps a second one in src, beside the settings of the bundled exercises.
export RUFF_CACHE_DIR := .ruff_cache

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do printf 'make %-12s %s\n' "$$name" "$$text"; done

setup: $(TOOLS) ## make .venv and install everything into it, development tools as well
	@echo "✓ .venv is ready"

$(PY):
	@python=$$(sh scripts/find-python.sh $(PYTHON)) || exit 1; \
	echo "→ creating .venv with $$("$$python" -V)"; \
	"$$python" -m venv --clear .venv || { rm -rf .venv; echo "✗ no .venv could be made; on Debian and Ubuntu its parts come with: apt-get install python3-venv" >&2; exit 1; }

$(SETUP): $(PY) pyproject.toml constraints-demo.txt
	@echo "→ installing bakeoff, once"
	@$(PY) scripts/install.py constraints-demo.txt .
	@touch $@

$(TOOLS): $(PY) pyproject.toml constraints.txt
	@echo "→ installing bakeoff and its development tools, once"
	@$(PY) scripts/install.py constraints.txt .
	@touch $(SETUP) $@

demo: $(SETUP) ## show a slice of every door with the embedded model, and one page over all of it
	@$(BIN)/bakeoff demo

test: $(TOOLS) ## run the unit tests and a journey through every door, in ten minutes on two cores
	@$(if $(COVERAGE),rm -f .coverage .coverage.*)
	@$(PYTEST) -m 'not full' $(COVERED) $(ARGS)

test-all: COVERAGE := 1
test-all: test ## run all other tests as well, in half an hour, and check the branch coverage
	@$(PYTEST) -m full $(COVERED) $(ARGS)
	@$(PY) -m coverage report

check: $(TOOLS) ## format, lint, types, import contracts, documentation
	@echo "→ ruff format"
	@$(BIN)/ruff format --check .
	@echo "→ ruff check"
	@$(BIN)/ruff check .
	@echo "→ mypy"
	@$(PY) -m mypy $(CHECKED)
	@echo "→ pyright and mypy, both strict, on the examples of evals in the docs"
	@$(PY) scripts/check_examples.py
	@echo "→ import contracts"
	@$(BIN)/lint-imports --no-logo
	@echo "→ documentation"
	@$(DOCS)

hostile: $(TOOLS) ## attack everything and compare with SECURITY.md, in hours (ARGS='--sample', ARGS='--part fuzz' for some)
	@$(PY) -m scripts.hostile $(ARGS)

bench: $(TOOLS) ## run the benchmarks against peers (BENCH=name for one)
	@$(PY) scripts/bench.py $(BENCH)

honest: $(TOOLS) ## compare the verdicts of honest solutions with plain tools (about 40 minutes)
	@$(PY) -m bench.honest $(ARGS)

format: $(TOOLS) ## put the code into shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(TOOLS) ## build the documentation into site/, where it works without a network
	@$(DOCS)
	@echo "✓ site/index.html"

wheel: $(TOOLS) ## build the wheel, and its bill of materials, into dist/
	@$(PY) -m build --wheel --no-isolation
	@$(PY) scripts/sbom.py dist

audit: $(TOOLS) ## look up known vulnerabilities of every pinned version (asks the index over the network)
	@$(PY) -m scripts.audit

constraints: $(PY) ## bring constraints.txt up to date with pyproject.toml (ARGS=--upgrade for new versions)
	@$(PY) -m scripts.constraints $(ARGS)

clean: ## remove .venv and whatever the other targets made; results/ stays
	@rm -rf .venv dist site .coverage .coverage.* .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests scripts bench -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
