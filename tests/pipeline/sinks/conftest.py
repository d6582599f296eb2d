"""A shop on an embedded engine whose changes are sent to sinks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stator import Db, Engine, TableSettings, connect
from stator.pipeline import StreamApp

from ..shop import shop


@pytest.fixture
def db(engine: Engine) -> Iterator[Db]:
    with connect(shop, engine) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


@pytest.fixture
def app() -> StreamApp:
    return StreamApp(shop, "going-out")
