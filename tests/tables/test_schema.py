"""Entities in a plan: models of other libraries, and markers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pydantic

from stator import (
    Design,
    Query,
    adapt,
    connect,
    find,
    read,
    updates,
    version,
    write,
)


class FrozenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    item_id: str
    owner: str = ""
    count: int = 0
    rev: int = 0


class Struct(msgspec.Struct, frozen=True):
    item_id: str
    count: int = 0
    seen: datetime | None = None


Frozen = adapt(FrozenModel, ident="item_id", markers={"rev": version()})


Packed = adapt(Struct, ident="item_id")


@read(rps=500)
def frozen(item_id: str) -> Query[FrozenModel]:
    return find(Frozen).where(Frozen.item_id == item_id)


@write(rps=5)
def change_owner() -> object:
    return updates(Frozen.owner)


@read(rps=5)
def by_owner(owner: str) -> Query[FrozenModel]:
    return find(Frozen).where(Frozen.owner == owner)


def test_models_that_cannot_change_are_written_and_updated() -> None:
    entities: list[Any] = [Frozen, Packed]
    db = connect(Design("models", entities, [by_owner, frozen, change_owner]))
    there = Frozen(item_id="a", owner="o")
    db.put(there)
    stored = db.get(Frozen, item_id="a")
    assert stored is not None and (stored.rev, there.rev) == (1, 0)
    with db.update(stored) as m:
        m.count += 2
    assert [each.count for each in db.fetch(by_owner("o"))] == [2]
    with db.update(Packed, item_id="b", or_create=True) as p:
        p.count += 1  # type: ignore[misc]  # the class is frozen, the update is not
    assert db.get(Packed, item_id="b") == Struct("b", 1)
