"""Every estimate of the expert designs is within a quarter of what the embedded engine takes."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from stator.verification import VerificationReport, verify
from tests.design import expert

NAMES = sorted(each.name for each in pkgutil.iter_modules(expert.__path__))
_MOST_ITEMS = 4_000


def measured(name: str, most_items: int) -> VerificationReport:
    design = importlib.import_module(f"tests.design.expert.{name}").design
    return verify(design, most_items=most_items)


def off(report: VerificationReport) -> dict[str, tuple[float, float]]:
    """Return the rows that are off and rest on no guess: estimated and measured units."""
    return {
        each.pattern: (each.estimated_units, each.measured_units)
        for each in report.failed
        if not each.guesses
    }


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_within_a_quarter_of_the_measured_units(name: str) -> None:
    assert off(measured(name, _MOST_ITEMS)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_more_items_measure_the_same(name: str) -> None:
    assert off(measured(name, 100_000)) == {}
