# Every target uses .venv in this checkout and sets it up first.
.DEFAULT_GOAL := help
SHELL := /bin/bash
# Where this is set, every test run and every process in it would compile all modules anew.
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
DEMO_SENTENCES := 酒店的服[MASK]很好 这本书的内[MASK]不错 房间很干[MASK],早餐也很好 电池的时[MASK]太短了
# On this many processors at most, as each process imports torch first.
UNIT_TESTS := -m unit -n logical --maxprocesses 8 --dist worksteal
PYTHON_SOURCES := crds operator jobs tests benchmarks

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Make .venv as uv.lock says
	@tools/setup.sh

.PHONY: demo
demo: setup ## Raw text to an evaluated, exported model, on this machine
	@$(BIN)/pretrainctl samples data quickstart --to build/demo/storage
	@$(BIN)/pretrainctl local crds/samples/quickstart.yaml --workdir build/demo
	@echo; echo "What the exported model puts where a character is hidden:"
	@$(BIN)/python -m pretrain_jobs fill-mask build/demo/export $(DEMO_SENTENCES)

.PHONY: test
test: setup test-bed ## All tests that CI runs; those of a cluster need root
	@$(BIN)/pytest $(UNIT_TESTS)
	@$(BIN)/python -m tools.test_levels

.PHONY: unit
unit: setup ## The tests that need no processes and no servers
	@$(BIN)/pytest $(UNIT_TESTS)

.PHONY: test-bed
test-bed: setup ## Build what the test bed runs, once: Kubernetes, its images, S3
	@PYTHONPATH=tests $(BIN)/python -m bed build

.PHONY: lint
lint: setup ## ruff, mypy, import rules, hadolint
	@$(BIN)/ruff check $(PYTHON_SOURCES)
	@$(BIN)/ruff format --check $(PYTHON_SOURCES)
	@$(BIN)/mypy $(PYTHON_SOURCES)
	@$(BIN)/lint-imports
	@$(BIN)/hadolint images/*/Containerfile

.PHONY: generate
generate: setup ## Renew the CRD and the reference from the models
	@$(BIN)/python -m pretrain_api crd > crds/pretrainjobs.yaml
	@$(BIN)/python -m pretrain_api docs > docs/reference/pretrainjob.md
	@$(BIN)/python -m tools.telemetry

.PHONY: generate-failures
generate-failures: ## Renew docs/failures.md from the last run of tests/cluster/faults
	@$(BIN)/python -m tools.failures_page

.PHONY: bench
bench: setup ## Figures as a table and build/bench.json (ONLY=operator, CORPUS=FILE, JOBS=N)
	@PYTHONPATH=tests:tests/support $(BIN)/python -m benchmarks $(ONLY) \
		$(if $(CORPUS),--corpus $(CORPUS)) $(if $(JOBS),--jobs $(JOBS))

.PHONY: kill-demo
kill-demo: setup ## The quickstart job, killed at ten random moments, against one left alone
	@$(BIN)/pretrainctl samples data quickstart --to build/kill-demo/data
	@PYTHONPATH=tests:tests/support $(BIN)/python -m pretrain_testing.killed_commands \
		crds/samples/quickstart.yaml --data build/kill-demo/data --workdir build/kill-demo

.PHONY: chaos
chaos: setup ## 200 random kills against runs left alone (KILLS=N, SEED=N, RUN=N; CLUSTER=1, on the bed too)
	@PYTHONPATH=tests:tests/support $(BIN)/python -m pretrain_testing.chaos --workdir build/chaos \
		$(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED)) $(if $(RUN),--run $(RUN)) \
		$(if $(CLUSTER),--cluster)

.PHONY: soak
soak: setup ## Half an hour on the bed with a kill every two minutes (MINUTES=N, EVERY=SECONDS, SEED=N)
	@PYTHONPATH=tests:tests/support $(BIN)/python -m pretrain_testing.soak \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(EVERY),--every $(EVERY)) \
		$(if $(SEED),--seed $(SEED))

include tests/bed/cluster.mk
include charts/chart.mk

.PHONY: clean
clean: ## Remove what was built here, not the caches
	@rm -rf build .mypy_cache .pytest_cache .ruff_cache .hypothesis
