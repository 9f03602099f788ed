"""Rules of the corpus, the tokenizer, preprocessing and the evaluation tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pretrain_api.problems import Problem
from pretrain_api.resolve import architecture_of
from pretrain_api.spec import PretrainJobSpec


def corpus_has_one_origin(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a corpus with neither raw sources nor a prepared dataset, or with both."""
    corpus = spec.corpus
    if not corpus.sources and corpus.dataset is None:
        yield Problem(("corpus",), "has no text: give at least one entry under sources")
    if corpus.sources and corpus.dataset is not None:
        yield Problem(
            ("corpus",),
            "has sources and a dataset; give raw sources or a prepared dataset, not both",
        )


def cleaning_keeps_something(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse bounds that no document can meet."""
    cleaning = spec.corpus.cleaning
    most = cleaning.max_characters
    if most is not None and most < cleaning.min_characters:
        yield Problem(
            ("corpus", "cleaning", "maxCharacters"),
            f"{most} is below minCharacters {cleaning.min_characters}, so no document is kept",
        )


def tokenizer_has_one_origin(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a tokenizer that is to be loaded and trained."""
    if spec.tokenizer.uri is not None and spec.tokenizer.train is not None:
        yield Problem(("tokenizer",), "has uri and train; load a tokenizer or train one, not both")


def tokenizer_fits_the_architecture(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse to train a tokenizer that the architecture's own class could not hold."""
    architecture, train = architecture_of(spec), spec.tokenizer.train
    if architecture is None or train is None or spec.tokenizer.uri is not None:
        return
    if architecture.objective == "clm" and train.algorithm in {"wordpiece", "unigram"}:
        yield Problem(
            ("tokenizer", "train", "algorithm"),
            f"{train.algorithm} needs a token for unknown text, which tokenizers of "
            f"{architecture.name} do not have; use byteLevelBpe",
        )
    if architecture.name == "qwen2" and train.lowercase:
        yield Problem(
            ("tokenizer", "train", "lowercase"),
            "true would be lost: transformers loads every tokenizer of qwen2 as one that keeps "
            "case; leave it out",
        )


def user_dictionary_is_used(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a user dictionary that nothing would read."""
    mlm = spec.objective.mlm
    segments = mlm is not None and mlm.whole_word and mlm.segmenter == "jieba"
    if spec.preprocess.user_dictionary is not None and not segments:
        yield Problem(
            ("preprocess", "userDictionary"),
            "is read by whole-word masking with the jieba segmenter only (objective.mlm.wholeWord "
            "true, segmenter jieba)",
        )


def task_names_differ(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse two tasks of one name: their results would overwrite each other."""
    counts = Counter(task.name for task in spec.evaluation.tasks)
    for i, task in enumerate(spec.evaluation.tasks):
        if counts[task.name] > 1:
            yield Problem(
                ("evaluation", "tasks", i, "name"),
                f'"{task.name}" is the name of {counts[task.name]} tasks; each needs its own',
            )


def task_lists_have_no_repeats(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a seed or a metric that is listed twice: it would be paid twice, and shown once."""
    for i, task in enumerate(spec.evaluation.tasks):
        for name, values in (("seeds", task.seeds), ("metrics", task.metrics)):
            repeated = [str(value) for value, n in Counter(values).items() if n > 1]
            if repeated:
                yield Problem(
                    ("evaluation", "tasks", i, name), f"lists {', '.join(repeated)} more than once"
                )


RULES = (
    corpus_has_one_origin,
    cleaning_keeps_something,
    tokenizer_has_one_origin,
    tokenizer_fits_the_architecture,
    user_dictionary_is_used,
    task_names_differ,
    task_lists_have_no_repeats,
)
