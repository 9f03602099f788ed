"""The test bed: a real Kubernetes on this machine, with two nodes, object storage and Prometheus.

Two profiles: `api` is an API server with its controllers, for tests that need no pods; `full` has
everything. Nothing here is part of the product, and nothing in it is mocked.
"""
