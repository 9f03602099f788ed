"""Rules of the model, its objective and the length of its samples."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from pretrain_api.presets import PRESETS, Architecture, ObjectiveName
from pretrain_api.problems import Problem
from pretrain_api.resolve import architecture_of, objective_names
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.model import ConfigValue
from pretrain_api.spec.preprocess import PackingStrategy
from pretrain_api.validation.config_ranges import range_problem

_PACKINGS: dict[ObjectiveName, tuple[PackingStrategy, ...]] = {
    "mlm": ("fullSentences", "documents", "segmentPairs"),
    "clm": ("blocks", "documents"),
}
"""What samples of an objective may be packed by; others judge for themselves."""

_KINDS: dict[type, str] = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


def model_is_named(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a model without a name, with an unknown preset, or with two architectures."""
    preset = PRESETS.get(spec.model.preset or "")
    named = spec.model.architecture
    if spec.model.preset is not None and preset is None:
        yield Problem(("model", "preset"), _unknown(spec.model.preset, list(PRESETS), "preset"))
    elif preset is not None and named not in {None, preset.architecture}:
        yield Problem(
            ("model", "architecture"),
            f"{named} contradicts the preset {preset.name}, which is a {preset.architecture}; "
            "leave one of the two out",
        )
    elif named is None:
        yield Problem(("model",), "names no model; set preset or architecture")


def config_overrides_are_known(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse overrides that the architecture does not have, of another type or out of range."""
    architecture = architecture_of(spec)
    if architecture is None:
        return
    for key, value in spec.model.config.items():
        message = _override_problem(architecture, key, value)
        if message:
            yield Problem(("model", "config", key), message)


def heads_divide_the_width(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse sizes of which no attention head can be made."""
    architecture = architecture_of(spec)
    if architecture is None:
        return
    config = spec.model.config
    width, heads = (architecture.setting(config, key) for key in _shape(architecture))
    if heads < 1 or width < 1:
        return
    if width % heads:
        yield Problem(
            ("model", "config", architecture.hidden),
            f"{width} cannot be shared by {heads} attention heads ({architecture.heads}); it "
            "must be a multiple of them",
        )
    elif architecture.rotary and width // heads % 2:
        yield Problem(
            ("model", "config", architecture.hidden),
            f"{width} over {heads} heads gives heads of {width // heads}; rotary positions need "
            "an even size",
        )


def key_value_heads_divide_the_heads(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse grouped-query attention whose groups are not equal."""
    architecture = architecture_of(spec)
    if architecture is None or architecture.key_value_heads is None:
        return
    heads = architecture.setting(spec.model.config, architecture.heads)
    groups = architecture.setting(spec.model.config, architecture.key_value_heads)
    if groups >= 1 and heads % groups:
        yield Problem(
            ("model", "config", architecture.key_value_heads),
            f"{groups} does not divide the {heads} attention heads ({architecture.heads})",
        )


def objective_fits_the_architecture(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse an objective that the model has no head for, and two objectives."""
    names = objective_names(spec)
    architecture = architecture_of(spec)
    if len(names) > 1:
        yield Problem(("objective",), f"has {' and '.join(names)}; give one of them")
        return
    for name in names:
        if architecture is not None and name != architecture.objective:
            yield Problem(
                ("objective", name),
                f"{architecture.name} is trained with {architecture.objective}; give that, leave "
                "objective out, or choose another architecture",
            )


def masked_shares_fit(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse shares of chosen tokens over 1, and a cap beyond the sample."""
    mlm = spec.objective.mlm
    length = spec.preprocess.sequence_length
    if mlm is None:
        return
    if mlm.mask_ratio + mlm.random_ratio > 1 + 1e-9:
        yield Problem(
            ("objective", "mlm", "randomRatio"),
            f"maskRatio {mlm.mask_ratio} and randomRatio {mlm.random_ratio} are more than 1 "
            "together; what they leave is kept as it is",
        )
    if mlm.max_predictions is not None and length is not None and mlm.max_predictions > length:
        yield Problem(
            ("objective", "mlm", "maxPredictions"),
            f"{mlm.max_predictions} is more than the {length} positions of a sample",
        )


def sequences_fit_the_positions(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse samples, in training and in fine-tuning, that the model has no positions for."""
    architecture = architecture_of(spec)
    if architecture is None or architecture.positions is None:
        return
    lengths = {("preprocess", "sequenceLength"): spec.preprocess.sequence_length or 0} | {
        ("evaluation", "tasks", i, "fineTuning", "maxLength"): task.fine_tuning.max_length
        for i, task in enumerate(spec.evaluation.tasks)
    }
    limit = architecture.longest_sequence(spec.model.config) or 0
    for path, length in lengths.items():
        if length > limit:
            yield Problem(path, _too_long(architecture, spec.model.config, length))


def packing_fits_the_objective(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a packing that the objective forms no samples with."""
    strategy, names = spec.preprocess.packing.strategy, objective_names(spec)
    fit = _PACKINGS.get(names[0]) if len(names) == 1 else None
    if strategy is not None and fit is not None and strategy not in fit:
        yield Problem(
            ("preprocess", "packing", "strategy"),
            f"{strategy} is no packing of {names[0]}; use {' or '.join(fit)}",
        )


def isolation_works(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse packed documents kept apart where attention would silently see across."""
    architecture, packing = architecture_of(spec), spec.preprocess.packing
    if architecture is None or not (packing.isolate_documents or packing.strategy == "documents"):
        return
    field = "isolateDocuments" if packing.isolate_documents else "strategy"
    path = ("preprocess", "packing", field)
    if not architecture.isolates:
        yield Problem(
            path,
            f"{architecture.name} cannot keep packed documents apart; leave isolateDocuments out, "
            "and choose another strategy than documents",
        )
    elif architecture.objective == "mlm" and spec.model.attention in {"eager", "flash_attention_2"}:
        yield Problem(
            path,
            f"needs the sdpa attention; with {spec.model.attention} packed documents would see "
            "each other (set model.attention to auto or sdpa)",
        )


RULES = (
    objective_fits_the_architecture,
    masked_shares_fit,
    sequences_fit_the_positions,
    packing_fits_the_objective,
    isolation_works,
    model_is_named,
    config_overrides_are_known,
    heads_divide_the_width,
    key_value_heads_divide_the_heads,
)


def _shape(architecture: Architecture) -> tuple[str, str]:
    return architecture.hidden, architecture.heads


def _unknown(name: str, known: list[str], kind: str) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
    return f'there is no {kind} "{name}"; {hint}'


def _override_problem(architecture: Architecture, key: str, value: ConfigValue) -> str:
    if key == "vocab_size":
        return "follows from the tokenizer and model.vocabPadMultiple; leave it out"
    if key not in architecture.config:
        return _unknown(key, list(architecture.config), f"{architecture.name} setting")
    kind = type(architecture.config[key])
    fits = type(value) is kind or (kind is float and type(value) is int)
    if not fits:
        return f"is {_KINDS[kind]}, not {value!r}"
    return range_problem(architecture, key, value)


def _too_long(architecture: Architecture, config: dict[str, ConfigValue], length: int) -> str:
    key = architecture.positions or ""
    rows = architecture.setting(config, key)
    unusable = architecture.unusable_positions(config)
    limit = architecture.longest_sequence(config)
    why = f" ({key} {rows}" + (f", of which {unusable} are never used)" if unusable else ")")
    return (
        f"{length} is more than the {limit} positions of the model{why}; shorten it, or set "
        f"model.config.{key} to at least {length + unusable}"
    )
