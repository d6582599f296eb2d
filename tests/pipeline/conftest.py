"""What tests of pipelines share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from stator import Engine
from tests.targets import servers, target

__all__ = ["engine", "quiet", "servers", "target"]


@pytest.fixture
def quiet() -> Iterator[None]:
    """Workers have much to tell of what is done to them here."""
    log = logging.getLogger("stator.workers")
    before = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(before)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open() as opened:
        yield opened
