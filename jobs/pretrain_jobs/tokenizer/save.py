"""Writing a tokenizer as the three files that AutoTokenizer loads.

tokenizer.json alone decides ids: `tokenizer_class` names the class that takes it as it is, since
the classes of single architectures rebuild parts of it from defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, processors

from pretrain_jobs.tokenizer.families import Family
from pretrain_jobs.tokenizer.files import (
    CONFIG_FILE,
    SPECIAL_TOKENS_FILE,
    TOKENIZER_FILE,
    write_json,
)

TOKENIZER_CLASS = "PreTrainedTokenizerFast"


def with_template(tokenizer: Tokenizer, family: Family) -> Tokenizer:
    """Declare the family's special tokens and put its template around texts, in place.

    Special tokens are matched before normalisation, and never in text that is encoded as text.
    """
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token in family.specials]
    )
    if family.template is not None:
        single, pair = family.template
        tokenizer.post_processor = processors.TemplateProcessing(
            single=single,
            pair=pair,
            special_tokens=[
                (token, tokenizer.token_to_id(token))
                for token in family.specials
                if f"{token}:" in pair
            ],
        )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, directory: Path, *, config: Mapping[str, Any]) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json.

    `config` holds `pad_token` and so on by role, and whatever else belongs into
    tokenizer_config.json. Equal input gives equal bytes.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / TOKENIZER_FILE).write_text(tokenizer.to_str(pretty=True) + "\n", encoding="utf-8")
    named = {key: value for key, value in config.items() if value and key.endswith("_token")}
    write_json(directory / SPECIAL_TOKENS_FILE, dict(named))
    write_json(
        directory / CONFIG_FILE,
        {"clean_up_tokenization_spaces": False, **config, "tokenizer_class": TOKENIZER_CLASS},
    )
