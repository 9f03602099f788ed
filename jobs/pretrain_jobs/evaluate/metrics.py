"""Figures of a run over all predictions at once, from the counts of true and predicted classes.

Three formulas, written out: the library that has them takes longer to import than they to compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from pretrain_api.spec.evaluation import Metric

Classes = NDArray[np.int64]


def measure(truth: Classes, predicted: Classes, metrics: Sequence[Metric]) -> dict[str, float]:
    """Each metric of predicted classes int64 [n] against the true ones.

    f1 is the unweighted mean over the classes that occur (macro), 0 for a class never predicted;
    mcc is Matthews' correlation coefficient, 0 when either side is constant.
    """
    counts = _count(truth, predicted)
    return {metric: _MEASURES[metric](counts) for metric in metrics}


def _count(truth: Classes, predicted: Classes) -> Classes:
    """How often each true class (row) was predicted as each class (column), int64 [K, K]."""
    classes = 1 + max(int(truth.max()), int(predicted.max()))
    cells = truth * classes + predicted
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def _accuracy(counts: Classes) -> float:
    return float(counts.trace() / counts.sum())


def _macro_f1(counts: Classes) -> float:
    sizes = counts.sum(axis=0) + counts.sum(axis=1)
    occurs = sizes > 0
    return float(np.mean(2 * counts.diagonal()[occurs] / sizes[occurs]))


def _mcc(counts: Classes) -> float:
    """Of any number of classes: Gorodkin (2004), doi:10.1016/j.compbiolchem.2004.09.006."""
    total, right = int(counts.sum()), int(counts.trace())
    true, predicted = counts.sum(axis=1), counts.sum(axis=0)
    spread = (total**2 - int(true @ true)) * (total**2 - int(predicted @ predicted))
    return (right * total - int(true @ predicted)) / math.sqrt(spread) if spread else 0.0


_MEASURES: dict[Metric, Callable[[Classes], float]] = {
    "accuracy": _accuracy,
    "f1": _macro_f1,
    "mcc": _mcc,
}
