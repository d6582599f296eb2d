from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stator.engine import Engine
from tests.engine.partiql.statements import Statements, create_tables


@pytest.fixture(params=["memory", "disk"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    path = str(tmp_path / "data") if request.param == "disk" else None
    with Engine.open(path, durability="process") as opened:
        create_tables(opened)
        yield opened


@pytest.fixture
def db(engine: Engine) -> Statements:
    return Statements(engine)
