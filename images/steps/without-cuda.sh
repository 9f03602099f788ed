#!/bin/sh
# Lets torch's CUDA build load without CUDA's libraries, on nodes that have no GPU anyway.
# The loader wants a library of every name that torch was linked to: they become names of an empty one,
# which torch brings and loads first. It wants their functions only when they are called, once Python
# asks for that: it asks for all of them at once by itself.
set -eu
cd /opt/venv/lib/python3*/site-packages

ldd torch/lib/libtorch_python.so | awk '$2 == "=>" && $3 == "not" {print $1}' | sort -u \
  | while read -r library; do ln -s libtorch_global_deps.so "torch/lib/$library"; done
echo 'import os, sys; sys.setdlopenflags(os.RTLD_LAZY)' > bind_when_called.pth
