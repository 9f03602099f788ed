# The chart's share of the Makefile's targets.
PYTHON_SOURCES += tools
HELM = $(shell PYTHONPATH=tests $(BIN)/python -m bed build helm)

.PHONY: lint-chart
lint: lint-chart
lint-chart: setup
	@$(BIN)/python tools/chart_files.py --check
	@$(HELM) lint --strict --quiet charts/pretrain-operator

.PHONY: generate-chart
generate: generate-chart
generate-chart: setup
	@$(BIN)/python tools/chart_files.py
