# The front door. Every target sets up what it needs; `make help` lists them.

PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/setup.stamp
EXAMPLES := .venv/examples.stamp
PEERS := .venv-peers/setup.stamp

.DEFAULT_GOAL := help
.PHONY: help setup demo nexmark flights test lint bench cases kills fuzz clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' $(MAKEFILE_LIST)

setup: $(SETUP)  ## .venv with the braid command and the developers' tools, and a Java

demo: $(SETUP)  ## a join that adapts, on the screen
	$(BIN)/braid demo

nexmark: $(SETUP)  ## queries of the NEXMark benchmark, compared with DuckDB
	$(BIN)/python -m examples.nexmark.run

flights: $(EXAMPLES)  ## a year of flights, weather and planes, compared with DuckDB
	$(BIN)/python -m examples.flights.run

test: $(SETUP)  ## all tests
	$(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

lint: $(SETUP)  ## style, types, and which room may import which
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(SETUP)  ## Braid beside its peers (in .venv-peers), and how it grows
	$(BIN)/python -m bench
	$(BIN)/python -m bench.growth
	$(BIN)/python -m bench.forms
	$(BIN)/python -m bench.decisions
	$(BIN)/python -m bench.adapting
	$(BIN)/python -m bench.optimizers
	$(BIN)/python -m bench.costs

cases: $(SETUP)  ## the long campaign of random queries under all plans
	BRAID_CASES=20 $(BIN)/pytest --timeout 7200 tests/oracle/test_plans_agree_with_duckdb.py \
		tests/oracle/test_overflow.py tests/oracle/test_migrations.py tests/spark/test_overflow.py \
		tests/spark/test_relocation.py tests/spark/test_migration.py tests/spark/test_bench.py \
		tests/laws/test_optimizers.py tests/laws/test_optimizer_timing.py

kills: $(SETUP)  ## the long campaign of killed processes
	BRAID_KILLS=24 $(BIN)/pytest -m kills tests/spark

fuzz: $(SETUP)  ## 100,000 mutated queries: each binds, or is an error that points at its fault
	BRAID_FUZZ=$${BRAID_FUZZ:-100000} $(BIN)/pytest --timeout 3600 tests/laws/test_cql_fuzz.py

clean:  ## away with all that these targets made
	rm -rf .venv .venv-peers .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log bench-results
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written last: a set-up that was cut short is done again.
$(SETUP): pyproject.toml tools/venv.sh tools/java.sh
	tools/venv.sh $(PYTHON) .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	tools/java.sh $(BIN)/python
	@touch $@

$(EXAMPLES): $(SETUP)
	$(BIN)/python -m pip install --quiet --editable '.[examples]'
	@touch $@

# An environment of their own: peers want other versions of what Braid uses. `bench` makes it
# when it is about to measure one of them.
$(PEERS): bench/peers/requirements.txt tools/venv.sh
	tools/venv.sh $(PYTHON) .venv-peers
	.venv-peers/bin/python -m pip install --quiet --requirement $<
	@touch $@
