"""What tests of pipelines share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from stator import Engine
from stator.pipeline.views.rebuild import rebuild
from stator.pipeline.workers.shards import consumer
from tests.targets import servers, target

__all__ = ["attentive", "engine", "quiet", "servers", "target"]


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


@pytest.fixture
def attentive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers look for rebuilds, and rebuilds for workers, all the time: none waits for seconds."""
    monkeypatch.setattr(consumer, "_ATTENTION_SECONDS", 0.01)
    monkeypatch.setattr(rebuild, "_LOOK_SECONDS", 0.01)
