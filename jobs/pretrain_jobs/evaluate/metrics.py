"""Figures of a run, by scikit-learn over all predictions at once, in the order of the samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from pretrain_api.spec.evaluation import Metric
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

Classes = NDArray[np.int64]


def measure(truth: Classes, predicted: Classes, metrics: Sequence[Metric]) -> dict[str, float]:
    """Each metric of predicted classes int64 [n] against the true ones.

    f1 is the unweighted mean over the classes that occur (macro), 0 for a class never predicted;
    mcc is Matthews' correlation coefficient, 0 when either side is constant.
    """
    return {metric: float(_MEASURES[metric](truth, predicted)) for metric in metrics}


def _macro_f1(truth: Classes, predicted: Classes) -> float:
    return float(f1_score(truth, predicted, average="macro", zero_division=0))


_MEASURES: dict[Metric, Callable[[Classes, Classes], float]] = {
    "accuracy": accuracy_score,
    "f1": _macro_f1,
    "mcc": matthews_corrcoef,
}
