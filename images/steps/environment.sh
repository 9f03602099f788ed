# Sourced by the other steps: what uv needs and no layer may keep. Both secrets are optional.
#   uv: lines NAME=value, such as UV_DEFAULT_INDEX=https://user:password@index.example/simple
#   ca: certificates in PEM that uv trusts instead of its own
set -eu
export PATH="/build:$PATH" UV_LINK_MODE=copy UV_NO_PROGRESS=1 UV_PYTHON_DOWNLOADS=never
if [ -f /run/secrets/ca ]; then
  export SSL_CERT_FILE=/run/secrets/ca
fi
if [ -f /run/secrets/uv ]; then
  set -a
  # shellcheck source=/dev/null
  . /run/secrets/uv
  set +a
fi
