"""Entities in a plan: models of other libraries, and markers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import pydantic
import pytest

from stator import (
    Design,
    Entity,
    Query,
    adapt,
    connect,
    created,
    find,
    ident,
    read,
    updated,
    updates,
    version,
    write,
    write_token,
)
from stator.clock import VirtualClock
from stator.design.entities.markers import NOT_YET
from stator.errors import ConfigurationError, DesignError, VersionConflict
from tests.targets import Target


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


class Sealed(Entity, frozen=True):
    item_id: str = ident()
    owner: str = ""
    count: int = 0
    rev: int = version()
    made: datetime = created()
    seen: datetime = updated()
    proof: str = write_token()


class Loose(Entity):
    item_id: str = ident()
    owner: str = ""
    count: int = 0
    rev: int = version()
    made: datetime = created()
    seen: datetime = updated()
    proof: str = write_token()


class LooseModel(pydantic.BaseModel):
    item_id: str
    owner: str = ""
    count: int = 0
    rev: int = 0
    made: datetime = NOT_YET
    seen: datetime = NOT_YET
    proof: str = ""


class SealedModel(pydantic.BaseModel, frozen=True):
    item_id: str
    owner: str = ""
    count: int = 0
    rev: int = 0
    made: datetime = NOT_YET
    seen: datetime = NOT_YET
    proof: str = ""


class LooseStruct(msgspec.Struct):
    item_id: str
    owner: str = ""
    count: int = 0
    rev: int = 0
    made: datetime = NOT_YET
    seen: datetime = NOT_YET
    proof: str = ""


class SealedStruct(msgspec.Struct, frozen=True):
    item_id: str
    owner: str = ""
    count: int = 0
    rev: int = 0
    made: datetime = NOT_YET
    seen: datetime = NOT_YET
    proof: str = ""


STAMPS: dict[str, Any] = {
    "rev": version(),
    "made": created(),
    "seen": updated(),
    "proof": write_token(),
}
COPIED: list[tuple[Any, Callable[..., Any]]] = [
    (Sealed, dataclasses.replace),
    (Loose, dataclasses.replace),
    *(
        (
            adapt(model, ident="item_id", markers=STAMPS),
            lambda made, **new: made.model_copy(update=new),
        )
        for model in (LooseModel, SealedModel)
    ),
    *(
        (adapt(model, ident="item_id", markers=STAMPS), msgspec.structs.replace)
        for model in (LooseStruct, SealedStruct)
    ),
]


@pytest.mark.parametrize(
    ("entity", "replace"), COPIED, ids=[entity.__name__ for entity, _ in COPIED]
)
def test_a_changed_copy_keeps_the_version_and_the_stamps(
    target: Target, entity: Any, replace: Callable[..., Any]
) -> None:
    @read()
    def by_id(item_id: str) -> Query[Any]:
        return find(entity).where(entity.item_id == item_id)

    clock = VirtualClock(1_700_000_000.0)
    db = target.connect(Design("copies", [entity], [by_id]), clock=clock)
    first = db.create(entity(item_id="a", owner="o"))
    assert (first.rev, first.made.timestamp(), bool(first.proof)) == (1, clock.now(), True)
    stale = replace(first, owner="late")
    clock.advance(60)
    second = db.put(replace(first, count=7))
    assert (second.rev, second.count, second.owner, second.made) == (2, 7, "o", first.made)
    assert second.seen.timestamp() == clock.now()
    assert db.get(entity, item_id="a", consistent=True) == second
    with pytest.raises(VersionConflict) as conflict:
        db.put(stale)
    assert conflict.value.entity == second
    with pytest.raises(VersionConflict):
        db.delete(stale)
    third = db.put(replace(second, count=8), once=True)
    assert db.get(entity, item_id="a", consistent=True) == third and third.rev == 3


def test_a_frozen_entity_is_left_as_it_is(target: Target) -> None:
    @read()
    def by_id(item_id: str) -> Query[Sealed]:
        return find(Sealed).where(Sealed.item_id == item_id)

    db = target.connect(Design("sealed", [Sealed], [by_id]))
    given = Sealed(item_id="a")
    stored = db.create(given)
    assert given.rev == 0 and stored.rev == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        stored.count = 3  # type: ignore[misc]  # frozen
    changing = db.update(stored, returns="new")
    with changing as recorded:
        recorded.count += 2  # type: ignore[misc]  # the class is frozen, the update is not
    assert changing.result is not None and (changing.result.rev, changing.result.count) == (2, 2)
    assert stored.rev == 1
    assert db.first(by_id("a"), consistent=None) == changing.result
    upserted = db.upsert(dataclasses.replace(changing.result, count=9))
    assert (upserted.rev, upserted.count, upserted.made) == (3, 9, stored.made)


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


def test_a_plan_of_another_design_is_refused() -> None:
    class Thing(Entity):
        thing_id: str = ident()

    other = Design("others", [Thing])
    with pytest.raises(ConfigurationError, match="of the design others, not of things"):
        connect(Design("things", [Thing]), plan=other.plan())


def test_a_plan_with_fields_that_the_class_lost_is_refused() -> None:
    def design(*fields: str) -> Design:
        body: dict[str, Any] = {"__annotations__": dict.fromkeys(("thing_id", *fields), str)}
        Thing: Any = type("Thing", (Entity,), body | {"thing_id": ident()})

        @read()
        def things(value: str) -> Any:
            return find(Thing).where(getattr(Thing, fields[0]) == value)

        return Design("things", [Thing], [things] if fields else [])

    stale = design("colour").plan()
    with pytest.raises(DesignError, match="the class Thing does not have: colour"):
        connect(design(), plan=stale)
