#!/bin/sh
# Builds the wheel of the project in the working directory and installs it, alone, into /opt/venv.
. /build/environment.sh

uv build --quiet --wheel --python python3 --out-dir /wheel \
  --build-constraint /build/wheel-requirements.txt --require-hashes
uv venv --quiet --python python3 /opt/venv
PYC_INVALIDATION_MODE=UNCHECKED_HASH \
  uv pip install --quiet --python /opt/venv --no-deps --no-index --compile-bytecode /wheel/*.whl
