#!/bin/sh
# dependencies.sh FILE [ACCELERATOR]: makes /opt/venv from requirements with hashes. It leaves out what
# no process of ours reads: the packages' own tests, headers, as there is no compiler, and uv's marks.
. /build/environment.sh
requirements=$1 accelerator=${2:-cuda}

uv venv --quiet --python python3 /opt/venv
PYC_INVALIDATION_MODE=UNCHECKED_HASH uv pip install --quiet --python /opt/venv \
  --no-deps --require-hashes --compile-bytecode --requirement "$requirements"
find /opt/venv/lib -depth -type d -name tests -exec rm -r {} +
find /opt/venv/lib -type f -path '*/include/*' \
  \( -name '*.h' -o -name '*.hpp' -o -name '*.cuh' -o -name '*.inl' \) -delete
rm -f /opt/venv/.lock /opt/venv/.gitignore /opt/venv/CACHEDIR.TAG
if [ "$accelerator" = cpu ]; then
  /build/without-cuda.sh
fi
