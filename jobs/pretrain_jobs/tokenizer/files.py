"""The files of a Hugging Face tokenizer directory, read as JSON without transformers.

Says what lies in them; what the tokens mean is `special`'s subject.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pretrain_jobs.errors import DataError

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
SPECIAL_TOKENS_FILE = "special_tokens_map.json"
TOKENIZER_FILES = (TOKENIZER_FILE, CONFIG_FILE, SPECIAL_TOKENS_FILE)
"""All that decides ids and special tokens; whatever else a directory holds is not needed."""


def read_json(path: Path, *, required: bool = False) -> dict[str, Any]:
    """A JSON object from a file; {} when the file is not there and not required.

    DataError names the file that is missing or is no JSON object.
    """
    if not path.is_file():
        if required:
            raise DataError(f"{path.parent} has no {path.name}: it is not a tokenizer directory")
        return {}
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds a {type(value).__name__}, expected a JSON object")
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write JSON with its keys in order, so that equal content gives equal bytes."""
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def tokenizer_sha256(directory: Path) -> str:
    """SHA-256 in hex over names, lengths and bytes of the tokenizer's files that are there."""
    digest = hashlib.sha256()
    for name in TOKENIZER_FILES:
        path = directory / name
        if path.is_file():
            data = path.read_bytes()
            digest.update(f"{name}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()
