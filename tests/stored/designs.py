"""The designs whose lock files are kept: those of this repository, by the name of the file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from stator import Design
from stator.demo.fleet import fleet
from tests.design import models, published

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
EXAMPLE_NAMES = ("batch", "ecommerce", "hierarchy", "time_series", "transfer")
STARTERS = ("shop", "routers", "blank")
LAYOUTS = ("single-table", "aggregate", "table-per-entity")
PUBLISHED = sorted(
    each.name for each in pkgutil.iter_modules(published.__path__) if each.name != "model"
)
SMALLER = {"shop": "sales_of", "social": "popular", "routers": "failures_since"}
"""Designs that were locked before they got one of their patterns."""


def known_designs() -> Iterator[tuple[str, Design]]:
    """Every design that is imported, under the name of its lock file."""
    yield "fleet", fleet
    for name in PUBLISHED:
        yield f"published-{name}", published_design(name)
    for name in SMALLER:
        for layout in LAYOUTS:
            yield f"{name}-{layout}", model_design(name, layout)


def published_design(name: str) -> Design:
    found: Design = importlib.import_module(f"{published.__name__}.{name}").MODEL.ours()
    return found


def model_design(name: str, layout: str = "single-table") -> Design:
    found: Design = getattr(models, name)(layout)
    return found
