# The images: `docker buildx bake` builds all for this machine, `docker buildx bake operator` one.
# docs/images.md tells what each holds and how to give an index of packages or certificates.

variable "REGISTRY" {
  default = ""
}

variable "TAG" {
  default = "dev"
}

variable "VERSION" {
  default = "0.0.0"
}

variable "REVISION" {
  default = ""
}

variable "SOURCE" {
  default = ""
}

variable "BASE_IMAGE" {
  default = "docker.io/library/python:3.11-slim-bookworm"
}

# sha256:... of BASE_IMAGE, so that a release can be built again from the same base.
variable "BASE_DIGEST" {
  default = ""
}

# Where uv comes from, for builders that cannot reach its registry.
variable "UV_IMAGE" {
  default = "ghcr.io/astral-sh/uv:0.13.9"
}

function "named" {
  params = [image, suffix]
  result = ["${REGISTRY == "" ? "" : "${REGISTRY}/"}pretrain-operator/${image}:${TAG}${suffix}"]
}

group "default" {
  targets = ["operator", "preprocess", "train"]
}

target "common" {
  context = "."
  args = {
    BASE_IMAGE  = BASE_IMAGE
    BASE_DIGEST = BASE_DIGEST
    UV_IMAGE    = UV_IMAGE
    VERSION     = VERSION
    REVISION    = REVISION
    SOURCE      = SOURCE
  }
}

target "operator" {
  inherits   = ["common"]
  dockerfile = "images/operator/Containerfile"
  tags       = named("operator", "")
}

target "preprocess" {
  inherits   = ["common"]
  dockerfile = "images/preprocess/Containerfile"
  tags       = named("preprocess", "")
}

target "train" {
  inherits   = ["common"]
  dockerfile = "images/train/Containerfile"
  tags       = named("train", "")
}

# Without CUDA's libraries, for nodes that have no GPU.
target "train-cpu" {
  inherits = ["train"]
  args     = { ACCELERATOR = "cpu" }
  tags     = named("train", "-cpu")
}
