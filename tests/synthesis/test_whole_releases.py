"""Whole releases between neighbours, attacked: what is drawn, and not only what is asked for, has to hide a unit."""

import numpy as np
import pytest
from scipy.stats import chi2

from sitr.audit import audit
from sitr.synthesis import choice, measuring, mixture, synthesizer
from sitr.synthesis.denoising import Denoised
from sitr.synthesis.measuring import Measuring
from sitr.synthesis.mixture import Mixture

ROWS = np.array([[0, 0]] * 40 + [[1, 2]] * 25 + [[1, 1]] * 3)
SIZES = (2, 3)
SAMPLES = 1500
MADE = synthesizer(SIZES, epsilon=0.3, delta=1e-6)


@pytest.fixture
def measured(monkeypatch):
    """The counts that a release measures, and the rows by each column; what takes long afterwards is left out."""
    monkeypatch.setattr(Mixture, "fitted", lambda self, *_: self)
    monkeypatch.setattr(mixture, "COMPONENTS", 2)
    monkeypatch.setattr(choice, "HALVINGS", 12)
    monkeypatch.setattr(measuring, "denoised", lambda noisy, *_, **__: Denoised(np.maximum(noisy, 0.0), "alike"))
    seen = []
    noisy = Measuring._noisy

    def kept(self, counts, deviation):
        found = noisy(self, counts, deviation)
        seen.append(found.ravel())
        return found

    monkeypatch.setattr(Measuring, "_noisy", kept)

    def release(rows):
        seen.clear()
        MADE.release(rows)
        counts = np.concatenate(seen)[: sum(SIZES)].astype(float)
        return np.append(counts, [counts[:2].sum(), counts[2:].sum()])

    return release


@pytest.mark.statistical
def test_the_auditor_finds_nothing_between_neighbours(measured):
    """Violations are certified with an error of at most 1e-9, chosen and certified on different samples."""
    report = audit(measured, ROWS, ROWS[:-1], claimed=MADE.event, samples=SAMPLES, confidence=1 - 1e-9)
    assert report.verdict != "violation certified", str(report)


def deviation_for_variance(monkeypatch):
    """The noise that was drawn once: a deviation handed over as a variance."""
    drawn = measuring.discrete_gaussian
    monkeypatch.setattr(
        measuring, "discrete_gaussian", lambda variance, *rest: drawn(type(variance)(float(variance) ** 0.5), *rest)
    )


def rows_without_noise(monkeypatch):
    """The number of rows taken as public: the counts of the first column add up to it."""
    noisy = Measuring._noisy

    def known(self, counts, deviation):
        found = noisy(self, counts, deviation)
        if counts.ndim == 1 and counts.size == SIZES[0]:
            found[0] += counts.sum() - found.sum()
        return found

    monkeypatch.setattr(Measuring, "_noisy", known)


def squares(monkeypatch, releases=150):
    """The squares of all noise that some releases draw, in the deviations that they ask for and are charged for."""
    found = []
    noisy = Measuring._noisy

    def kept(self, counts, deviation):
        made = noisy(self, counts, deviation)
        found.append(((made - counts).ravel() / deviation) ** 2)
        return made

    monkeypatch.setattr(Measuring, "_noisy", kept)
    for _ in range(releases):
        MADE.release(ROWS)
    return np.concatenate(found)


@pytest.mark.statistical
def test_noise_has_the_deviation_that_is_charged_for(measured, monkeypatch):
    """Discrete noise of these deviations has their variance to 1e-9; either tail of χ² has 5e-10."""
    found = squares(monkeypatch)
    assert chi2.ppf(5e-10, found.size) <= found.sum() <= chi2.isf(5e-10, found.size)


@pytest.mark.statistical
def test_a_deviation_that_is_handed_over_as_a_variance_is_seen(measured, monkeypatch):
    deviation_for_variance(monkeypatch)
    found = squares(monkeypatch)
    assert found.sum() < chi2.ppf(5e-10, found.size)


@pytest.mark.statistical
def test_the_auditor_catches_a_twin_that_takes_the_number_of_rows_as_public(monkeypatch, request):
    rows_without_noise(monkeypatch)  # before what is measured is watched
    measured = request.getfixturevalue("measured")
    report = audit(measured, ROWS, ROWS[:-1], claimed=MADE.event, samples=SAMPLES, confidence=1 - 1e-9)
    assert report.verdict == "violation certified", str(report)
