"""Whether a learner that saw synthetic rows alone does well on real ones: for tests, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..errors import InvalidArgument, MissingExtra
from ..tables.codes import Code

Integers = NDArray[np.int64]
MOST_CATEGORIES = 255  # that the learner takes for such; more are taken for numbers


class Trained(NamedTuple):
    """How well two learners foretell a column of real rows that neither saw.

    Attributes:
        target: The column.
        measure: "AUC" of two values, "accuracy" of more, "R²" of a number.
        synthetic: Of the learner that saw synthetic rows,
        real: and of one that saw as many real ones, or half of them.
    """

    target: str
    measure: str
    synthetic: float
    real: float

    def __str__(self) -> str:
        return (
            f"{self.target} foretold on real rows, {self.measure}: "
            f"{self.synthetic:.3f} trained on synthetic rows, {self.real:.3f} on real ones"
        )


def trained(codes: Sequence[Code], real: Integers, synthetic: Integers, target: str, seed: int | None) -> Trained:
    """Return how well gradient boosting foretells a column: trained on synthetic rows, and on half of the real ones.

    Args:
        codes: How the columns are numbered.
        real: Rows, by numbers.
        synthetic: Rows, by numbers.
        target: Which column; rows that lack it are left out.
        seed: Which half of the real rows is for the test, and how the learner draws.

    Raises:
        InvalidArgument: There is no such column, or it has one value only.
        MissingExtra: scikit-learn is not installed.
    """
    names = [code.name for code in codes]
    _validate.choice("target", target, names)
    place, others = names.index(target), [one for one in range(len(codes)) if codes[one].name != target]
    try:
        ensemble, metrics = import_module("sklearn.ensemble"), import_module("sklearn.metrics")
    except ImportError:
        raise MissingExtra(
            "training on synthetic rows needs scikit-learn, which is not installed.",
            why="it is for tests alone, so nothing else needs it.",
            do="pip install 'sitr[compare]'",
        ) from None
    code = codes[place]
    half = np.random.default_rng(seed).permutation(len(real))
    parts = [real[half[::2]], real[half[1::2]], synthetic]
    tested, *seen = [part[part[:, place] < code.known] for part in parts]
    if any(np.unique(part[:, place]).size < 2 for part in (tested, *seen)) or not others:
        raise InvalidArgument(f"{target} cannot be foretold: it has one value only, or there is no other column.")
    nominal = [not codes[one].ordered and codes[one].size <= MOST_CATEGORIES for one in others]
    kind = "HistGradientBoostingRegressor" if code.ordered else "HistGradientBoostingClassifier"

    def scored(rows: Integers) -> tuple[str, float]:
        learner = getattr(ensemble, kind)(categorical_features=nominal, random_state=seed)
        learner.fit(rows[:, others], rows[:, place])
        return _scored(metrics, learner, tested[:, others], tested[:, place], code)

    (measure, by_real), (_, by_synthetic) = map(scored, seen)
    return Trained(target, measure, by_synthetic, by_real)


def _scored(metrics: Any, learner: Any, rows: Integers, truth: Integers, code: Code) -> tuple[str, float]:
    if code.ordered:
        return "R²", float(metrics.r2_score(truth, learner.predict(rows)))
    if code.known == 2:
        return "AUC", float(metrics.roc_auc_score(truth, learner.predict_proba(rows)[:, 1]))
    return "accuracy", float(metrics.accuracy_score(truth, learner.predict(rows)))
