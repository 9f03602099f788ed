# The test bed, for people: a Kubernetes with two nodes, object storage and Prometheus, here.
BED := PYTHONPATH=tests $(BIN)/python -m bed

.PHONY: cluster
cluster: setup ## A Kubernetes on this machine with the chart installed (build/bed/kubeconfig)
	@$(BED) up

.PHONY: cluster-demo
cluster-demo: setup ## The quickstart job on two nodes of that cluster, with its data in S3
	@$(BED) demo
	@echo; echo "What the exported model puts where a character is hidden:"
	@$(BIN)/python -m pretrain_jobs fill-mask build/bed/demo/export $(DEMO_SENTENCES)

.PHONY: cluster-down
cluster-down: setup ## End that cluster and remove all but its cache (FORCE=1: also another checkout's)
	@$(BED) down $(if $(FORCE),--force)
