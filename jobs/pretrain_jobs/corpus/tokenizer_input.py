"""The tokenizer that a slice is encoded with, fetched from its artifact."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pretrain_api.stages import PreprocessStageConfig
from tokenizers import Tokenizer

from pretrain_jobs.corpus.preparation import Vocabulary
from pretrain_jobs.dataset.format.native import token_dtype
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import artifact, open_store
from pretrain_jobs.tokenizer.load import load_tokenizer, tokenizer_sha256
from pretrain_jobs.tokenizer.special import SpecialTokens, load_special_tokens


@dataclass(frozen=True)
class PreparedTokenizer:
    """A tokenizer's local directory and what the dataset says of it; `length` counts all ids."""

    directory: Path
    sha256: str
    length: int
    vocabulary: Vocabulary

    def load(self) -> Tokenizer:
        """The tokenizer itself, without truncation or padding."""
        return load_tokenizer(self.directory)


def fetch_prepared_tokenizer(config: PreprocessStageConfig, directory: Path) -> PreparedTokenizer:
    """Download the tokenizer's artifact; DataError when it is not there or not whole."""
    store = open_store(config.storage, config.tokenizer_uri)
    manifest = artifact.load(store, kind="tokenizer")
    if manifest is None:
        raise DataError(
            f"there is no tokenizer in {config.tokenizer_uri}: the tokenizer stage makes it"
        )
    artifact.download_artifact(store, manifest, directory)
    special = load_special_tokens(directory)
    return PreparedTokenizer(
        directory=directory,
        sha256=tokenizer_sha256(directory),
        length=special.length,
        vocabulary=Vocabulary(
            dtype=token_dtype(special.length),
            unknown=special.unk,
            special=_never_in_text(directory, special),
        ),
    )


def _never_in_text(directory: Path, tokens: SpecialTokens) -> frozenset[int]:
    """Ids that text must not produce; words that a user added to a vocabulary are text."""
    added = load_tokenizer(directory).get_added_tokens_decoder()
    flagged = {number for number, token in added.items() if token.special}
    roles = {tokens.pad, tokens.cls, tokens.sep, tokens.mask, tokens.bos, tokens.eos}
    return frozenset(flagged | {number for number in roles if number is not None})
