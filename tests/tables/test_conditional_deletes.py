"""Deletes that name more than the key delete only an item that matches, in batches as well."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from stator import Delete, Design, Entity, ident, soft_delete
from stator.errors import StatorError
from stator.tables.db import Db
from tests.targets import Target


class Animal(Entity):
    animal_id: str = ident()
    owner: str = "o"


class Dog(Animal, variant="dog"):
    breed: str = "x"


class Cat(Animal, variant="cat"):
    indoor: bool = True


class Order(Entity):
    order_id: str = ident()
    user_id: str
    note: str | None = None


class Kept(Entity):
    kept_id: str = ident()
    user_id: str
    gone_at: datetime | None = soft_delete()


class Pet(Entity):
    pet_id: str = ident()
    gone_at: datetime | None = soft_delete()


class Bird(Pet, variant="bird"):
    wings: int = 2


DESIGN = Design("zoo", [Animal, Order, Kept, Pet])


@pytest.fixture
def db(target: Target) -> Db:
    db = target.connect(DESIGN)
    db.put(Order(order_id="1", user_id="u1"))
    db.put(Kept(kept_id="1", user_id="u1"))
    db.put(Cat(animal_id="1"))
    db.put(Animal(animal_id="2"))
    db.put(Pet(pet_id="1"))
    return db


def deletes(db: Db, entity: type[Any], identity: dict[str, Any]) -> list[Callable[[], Any]]:
    """Every way to delete one item by its class."""

    def in_transaction() -> None:
        with db.transaction() as tx:
            tx.delete(entity, **identity)

    return [
        lambda: db.delete(entity, **identity),
        lambda: db.delete_many(entity, [identity]),
        lambda: db.write_many([Delete(entity, **identity)]),
        lambda: db.write_many([Delete(entity, **identity), Order(order_id="9", user_id="u")]),
        in_transaction,
    ]


def test_a_field_beside_the_key_must_match(db: Any) -> None:
    for entity, name in ((Order, "order_id"), (Kept, "kept_id")):
        for delete in deletes(db, entity, {name: "1", "user_id": "u2"}):
            with pytest.raises(StatorError):
                delete()
            assert db.exists(entity, **{name: "1"})
        result = db.delete_many(entity, [{name: "1", "user_id": "u2"}], on_error="collect")
        assert (result.written, len(result.failures)) == (0, 1)
        for delete in deletes(db, entity, {name: "1", "user_id": "u1"}):
            delete()
            assert not db.exists(entity, **{name: "1"})
            db.put(entity(**{name: "1", "user_id": "u1"}))


def test_a_variant_deletes_only_items_of_its_own(db: Db) -> None:
    for animal_id in ("1", "2"):
        for delete in deletes(db, Dog, {"animal_id": animal_id}):
            with pytest.raises(StatorError):
                delete()
            assert db.exists(Animal, animal_id=animal_id)
        with pytest.raises(StatorError):
            db.delete(Dog(animal_id=animal_id))  # an object that was not read
        assert db.exists(Animal, animal_id=animal_id)
        db.delete_many(Animal, [animal_id])
        assert not db.exists(Animal, animal_id=animal_id)
    with pytest.raises(StatorError):
        db.delete(Bird(pet_id="1"))
    assert db.exists(Pet, pet_id="1")


def test_deletes_by_key_alone_still_go_in_batches(db: Db) -> None:
    db.write_many([Order(order_id=str(n), user_id="u") for n in range(40)])
    result = db.delete_many(Order, [str(n) for n in range(40)])
    assert (result.written, result.requests) == (40, 2)
