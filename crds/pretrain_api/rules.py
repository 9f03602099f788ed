"""The CEL rules of the CRD as data, each with an object that it accepts and one that it refuses.

They are the rules that an API server can judge from the object alone; what needs presets or an
architecture's sizes is `pretrain_api.validation`'s, whose verdict the operator writes into the
condition Accepted. Where a field may be absent a rule asks `has()` first: defaults are validated
by themselves, before those inside them are filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pretrain_api.layers import UNIONS, stack
from pretrain_api.names import JOB_NAME_PATTERN, LONGEST_JOB_NAME, NAME_RULE
from pretrain_api.resolve import DEFAULT_GLOBAL_BATCH_SIZE

MINIMAL_SPEC: Mapping[str, Any] = {
    "corpus": {"sources": [{"uri": "corpus/text.jsonl"}]},
    "model": {"architecture": "bert"},
}
"""What an example's fragment is laid over."""


@dataclass(frozen=True)
class Example:
    """A fragment of a spec over the minimal one; `before` is what an update starts from.

    None in a fragment takes the field away.
    """

    spec: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] | None = None
    name: str = "example"

    def document(self) -> dict[str, Any]:
        """Give the whole object to create, or to update to."""
        return _document(self.name, self.spec)

    def document_before(self) -> dict[str, Any] | None:
        """Give the whole object to create first; None when there is no update."""
        return None if self.before is None else _document(self.name, self.before)


def _document(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "pretrain.dev/v1alpha1",
        "kind": "PretrainJob",
        "metadata": {"name": name},
        "spec": _laid(spec, MINIMAL_SPEC),
    }


def _laid(spec: Mapping[str, Any], minimal: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a fragment over the minimal spec; None takes a field away."""
    taken = [key for key, value in spec.items() if value is None]
    merged = {key: value for key, value in stack(spec, minimal).items() if key not in taken}
    inner = {key: value for key, value in spec.items() if isinstance(value, Mapping)}
    return {**merged, **{key: _laid(value, minimal.get(key, {})) for key, value in inner.items()}}


@dataclass(frozen=True, kw_only=True)
class CelRule:
    """A rule on the object at `path` (dots, [] for items; empty for the root).

    `message_expression` is CEL that makes the message from the object, `told` what it makes of the
    refused example; `message` stands where it cannot be evaluated.
    """

    path: str
    rule: str
    message: str
    accepted: Example
    refused: Example
    message_expression: str = ""
    told: str = ""

    @property
    def words(self) -> str:
        """What an API server says to the refused example."""
        return self.told or self.message


def fragment(path: str, value: Any) -> dict[str, Any]:
    """Write `value` at a dotted path below spec: ("workers.replicas", 2)."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return dict(value)


def _at_most_one(path: tuple[str, ...], examples: Mapping[str, Any]) -> CelRule:
    """Make the rule of a union, given values of its first two members."""
    members = UNIONS[path]
    first, second = members[:2]
    place = ".".join(path)
    return CelRule(
        path=f"spec.{place}",
        rule=f"[{', '.join(f'has(self.{member})' for member in members)}]"
        ".filter(said, said).size() <= 1",
        message=f"at most one of {', '.join(members)} may be set",
        accepted=Example(fragment(place, {first: examples[first]})),
        refused=Example(
            fragment(place, {first: examples[first], second: examples[second]}),
        ),
    )


NAME = CelRule(
    path="",
    rule=f"size(self.metadata.name) <= {LONGEST_JOB_NAME} && "
    f"self.metadata.name.matches('{JOB_NAME_PATTERN}')",
    message=f"metadata.name {NAME_RULE}",
    accepted=Example(name="a" * LONGEST_JOB_NAME),
    refused=Example(name="a" * (LONGEST_JOB_NAME + 1)),
)

UNION_RULES: tuple[CelRule, ...] = (
    CelRule(
        path="spec.corpus",
        rule="(has(self.sources) && size(self.sources) > 0) != has(self.dataset)",
        message="give raw text under sources or a prepared dataset, and not both",
        accepted=Example(),
        refused=Example({"corpus": {"dataset": {"uri": "datasets/prepared"}}}),
    ),
    CelRule(
        path="spec.model",
        rule="has(self.preset) || has(self.architecture)",
        message="set preset or architecture",
        accepted=Example(),
        refused=Example({"model": {"architecture": None}}),
    ),
    CelRule(
        path="spec.storage",
        rule="!has(self.credentialsSecret) || !has(self.serviceAccountName)",
        message="credentialsSecret and serviceAccountName exclude each other",
        accepted=Example({"storage": {"uri": "s3://bucket", "credentialsSecret": "keys"}}),
        refused=Example(
            {
                "storage": {
                    "uri": "s3://bucket",
                    "credentialsSecret": "keys",
                    "serviceAccountName": "trainer",
                }
            }
        ),
    ),
    CelRule(
        path="spec.checkpoint.localVolume",
        rule="has(self.hostPath) != has(self.persistentVolumeClaim)",
        message="give hostPath or persistentVolumeClaim, and not both; other volumes do not "
        "outlive their pod",
        accepted=Example(fragment("checkpoint.localVolume.hostPath.path", "/var/lib/pretrain")),
        refused=Example(fragment("checkpoint", {"localVolume": {}})),
    ),
    _at_most_one(("tokenizer",), {"uri": "tokenizers/mine", "train": {}}),
    _at_most_one(("objective",), {"mlm": {}, "clm": {}}),
    _at_most_one(("training",), {"maxSteps": 100, "epochs": 1.5}),
)

_BATCH = (
    "(has(self.training.globalBatchSize) ? self.training.globalBatchSize : "
    f"(has(self.model.preset) ? 0 : {DEFAULT_GLOBAL_BATCH_SIZE}))"
)
_UNIT = (
    "(self.workers.replicas * self.workers.processesPerWorker * "
    "(has(self.training.microBatchSize) ? self.training.microBatchSize : 1))"
)
_BELOW = f"{_BATCH} / {_UNIT} * {_UNIT}"
_NEAREST = (
    "'training.globalBatchSize: %s is no multiple of %s (%s replicas x %s processes%s); "
    "the nearest are %s'.format(["
    f"string({_BATCH}), string({_UNIT}), "
    "string(self.workers.replicas), string(self.workers.processesPerWorker), "
    "has(self.training.microBatchSize) && self.training.microBatchSize > 1 ? "
    "' x microBatchSize %s'.format([string(self.training.microBatchSize)]) : '', "
    f"{_BATCH} < {_UNIT} ? string({_UNIT}) : "
    f"'%s and %s'.format([string({_BELOW}), string({_BELOW} + {_UNIT})])])"
)
"""The words of `pretrain_api.validation.training.batch_is_shared_equally`.

By `format`, as strings of unknown length that are added up cost more than any rule may.
"""

VALUE_RULES: tuple[CelRule, ...] = (
    CelRule(
        path="spec",
        # Counts below 1, which the schema refuses as such, are no divisors.
        rule="self.workers.replicas < 1 || self.workers.processesPerWorker < 1 || "
        "(has(self.training.microBatchSize) && self.training.microBatchSize < 1) || "
        f"{_BATCH} % {_UNIT} == 0",
        message_expression=_NEAREST,
        told="training.globalBatchSize: 10 is no multiple of 3 (3 replicas x 1 processes); the "
        "nearest are 9 and 12",
        message="training.globalBatchSize (256 when left out) must be a multiple of "
        "workers.replicas x workers.processesPerWorker x training.microBatchSize; pretrainctl "
        "validate tells the nearest",
        accepted=Example({"workers": {"replicas": 2}, "training": {"globalBatchSize": 10}}),
        refused=Example({"workers": {"replicas": 3}, "training": {"globalBatchSize": 10}}),
    ),
    CelRule(
        path="spec.storage",
        rule="self.uri.startsWith('s3://') || self.uri.startsWith('file:///')",
        message="uri begins with s3:// or file:///",
        accepted=Example(fragment("storage.uri", "file:///data")),
        refused=Example(fragment("storage.uri", "data/here")),
    ),
    CelRule(
        path="spec.corpus.cleaning",
        rule="!has(self.maxCharacters) || !has(self.minCharacters) || "
        "self.minCharacters <= self.maxCharacters",
        message="maxCharacters is below minCharacters, so no document would be kept",
        accepted=Example(fragment("corpus.cleaning", {"minCharacters": 5, "maxCharacters": 5})),
        refused=Example(fragment("corpus.cleaning", {"minCharacters": 6, "maxCharacters": 5})),
    ),
    CelRule(
        path="spec.objective.mlm",
        rule="!has(self.maskRatio) || !has(self.randomRatio) || "
        "self.maskRatio + self.randomRatio <= 1.000000001",
        message="maskRatio and randomRatio are at most 1 together",
        accepted=Example(fragment("objective.mlm", {"maskRatio": 0.9, "randomRatio": 0.1})),
        refused=Example(fragment("objective.mlm", {"maskRatio": 0.9, "randomRatio": 0.2})),
    ),
    CelRule(
        path="spec.training",
        rule="!has(self.maxSteps) || !has(self.schedule) || !has(self.schedule.warmupSteps) || "
        "self.schedule.warmupSteps < self.maxSteps",
        message="schedule.warmupSteps must be below maxSteps, else the learning rate never "
        "reaches its peak",
        accepted=Example({"training": {"maxSteps": 10, "schedule": {"warmupSteps": 9}}}),
        refused=Example({"training": {"maxSteps": 10, "schedule": {"warmupSteps": 10}}}),
    ),
    CelRule(
        path="spec.training.schedule",
        rule="!has(self.decaySteps) || (has(self.type) && self.type == 'warmupStableDecay')",
        message="decaySteps belongs to the type warmupStableDecay",
        accepted=Example(
            fragment("training.schedule", {"type": "warmupStableDecay", "decaySteps": 5})
        ),
        refused=Example(fragment("training.schedule", {"type": "cosine", "decaySteps": 5})),
    ),
    CelRule(
        path="spec.training.zero",
        rule="!has(self.offload) || !has(self.offload.optimizer) || !self.offload.optimizer || "
        "(has(self.stage) && self.stage >= 2)",
        message="the optimizer is offloaded at stages 2 and 3 only",
        accepted=Example(fragment("training.zero", {"stage": 2, "offload": {"optimizer": True}})),
        refused=Example(fragment("training.zero", {"stage": 1, "offload": {"optimizer": True}})),
    ),
    CelRule(
        path="spec.training.zero",
        rule="!has(self.offload) || !has(self.offload.parameters) || !self.offload.parameters || "
        "(has(self.stage) && self.stage == 3)",
        message="parameters are offloaded at stage 3 only",
        accepted=Example(fragment("training.zero", {"stage": 3, "offload": {"parameters": True}})),
        refused=Example(fragment("training.zero", {"stage": 2, "offload": {"parameters": True}})),
    ),
    CelRule(
        path="spec.failurePolicy.backoff",
        rule="!has(self.initialSeconds) || !has(self.maximumSeconds) || "
        "self.initialSeconds <= self.maximumSeconds",
        message="initialSeconds is above maximumSeconds",
        accepted=Example(
            fragment("failurePolicy.backoff", {"initialSeconds": 5, "maximumSeconds": 5})
        ),
        refused=Example(
            fragment("failurePolicy.backoff", {"initialSeconds": 6, "maximumSeconds": 5})
        ),
    ),
)


def _immutable(path: str, name: str, before: Any, after: Any) -> CelRule:
    """Make the rule that a field never changes, appears or goes, with two values of it."""
    place = f"{path}.{name}" if path else name
    old = fragment(place, before)
    return CelRule(
        path=f"spec.{path}" if path else "spec",
        rule=f"has(self.{name}) == has(oldSelf.{name}) && "
        f"(!has(self.{name}) || self.{name} == oldSelf.{name})",
        message=f"{name} is immutable; create another PretrainJob instead",
        accepted=Example(stack(old, {"suspend": True}), before=old),
        refused=Example(fragment(place, after), before=old),
    )


IMMUTABLE_RULES: tuple[CelRule, ...] = (
    _immutable("", "managedBy", "example.com/other", None),
    _immutable("", "storage", {"uri": "s3://a"}, {"uri": "s3://b"}),
    _immutable("", "corpus", {"maxRejects": 1}, {"maxRejects": 2}),
    _immutable("", "tokenizer", {"uri": "tokenizers/a"}, {"uri": "tokenizers/b"}),
    _immutable("", "objective", {"mlm": {"probability": 0.1}}, {"mlm": {"probability": 0.2}}),
    _immutable("", "model", {"vocabPadMultiple": 8}, {"vocabPadMultiple": 64}),
    _immutable("", "training", {"seed": 1}, {"seed": 2}),
    _immutable("preprocess", "sequenceLength", 128, 256),
    _immutable("preprocess", "sliceBytes", 1024, 2048),
    _immutable("preprocess", "shardSize", 1024, 2048),
    _immutable("preprocess", "userDictionary", "words/a.txt", "words/b.txt"),
    _immutable("preprocess", "packing", {"strategy": "fullSentences"}, {"strategy": "documents"}),
    _immutable("workers", "processesPerWorker", 1, 2),
    _immutable("workers", "threadsPerProcess", 1, 2),
    _immutable("workers", "device", "cpu", "cuda"),
    _immutable("checkpoint", "uri", "s3://a/checkpoints", "s3://b/checkpoints"),
    _immutable(
        "evaluation",
        "tasks",
        [{"name": "sentiment", "data": {"uri": "a.jsonl"}}],
        [{"name": "sentiment", "data": {"uri": "b.jsonl"}}],
    ),
    _immutable("export", "uri", "s3://a/exports", "s3://b/exports"),
    _immutable("export", "dtype", "float32", "bfloat16"),
    _immutable("export", "maxShardBytes", 1024, 2048),
    _immutable("export", "push", {"repo": "a/b", "tokenSecret": "hub"}, None),
    _immutable("export", "modelCard", {"license": "mit"}, {"license": "apache-2.0"}),
)

RULES: tuple[CelRule, ...] = (NAME, *UNION_RULES, *VALUE_RULES, *IMMUTABLE_RULES)
"""Every rule that is written by hand; those of open bounds come from the models."""
