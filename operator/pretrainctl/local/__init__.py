"""The process backend: runs what the plan asks for as processes of this machine."""
