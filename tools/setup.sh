#!/usr/bin/env bash
# Makes .venv as uv.lock says. Needs only Python 3.11 to 3.13; installs uv beside the user's caches
# if it is not there. Safe to run again: an up-to-date environment takes seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

UV_VERSION=0.13.9
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/pretrain-operator"

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 2; }

# The environment's own interpreter comes first: for any other, uv would make it anew.
find_python() {
  local candidate
  for candidate in "$PWD/.venv/bin/python" python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; raise SystemExit(not (3, 11) <= sys.version_info < (3, 14))' \
        2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "no Python 3.11, 3.12 or 3.13 found; install one, for example: apt-get install python3"
}

install_uv() {
  say "installing uv $UV_VERSION into $CACHE/uv"
  if ! "$PYTHON" -m venv --clear "$CACHE/uv" >/dev/null 2>&1; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null \
      || die "this Python has no venv module; install it, for example: apt-get install python3-venv"
    say "installing python3-venv"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    "$PYTHON" -m venv --clear "$CACHE/uv"
  fi
  "$CACHE/uv/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
}

PYTHON="$(find_python)"
if command -v uv >/dev/null; then
  UV="$(command -v uv)"
else
  UV="$CACHE/uv/bin/uv"
  [ -x "$UV" ] || install_uv
fi
say "locked dependencies into .venv ($("$PYTHON" --version), a few GB on the first run)"
# Compiled now, since an interpreter told not to write bytecode would compile torch at every start.
# A busy machine may take longer over a large file than the minute that uv allows by itself.
UV_COMPILE_BYTECODE_TIMEOUT=600 "$UV" sync --frozen --quiet --compile-bytecode --all-extras --python "$PYTHON"
ln -sf "$UV" .venv/bin/uv
