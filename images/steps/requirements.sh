#!/bin/sh
# requirements.sh EXTRA [ACCELERATOR]: what uv.lock pins for EXTRA, with hashes, on standard output.
# Only a change of this list makes the dependencies' layer anew, not every change of pyproject.toml.
# The list lacks hf-xet, which only downloads from a model hub, and for ACCELERATOR=cpu CUDA's
# libraries, but for the two that torch calls where there is no GPU.
. /build/environment.sh
extra=$1 accelerator=${2:-cuda}

export_lock() {
  uv export --quiet --frozen --no-dev --no-emit-project --no-header --no-annotate --extra "$extra" "$@"
}

set -- --no-emit-package hf-xet
if [ "$accelerator" = cpu ]; then
  unused=$(export_lock --no-hashes | sed -nE 's/^(nvidia-[a-z0-9-]+|cuda-[a-z]+|triton)==.*/\1/p' \
    | grep -vE '^nvidia-cuda-(runtime|cupti)$')
  for package in $unused; do
    set -- "$@" --no-emit-package "$package"
  done
fi
export_lock "$@"
