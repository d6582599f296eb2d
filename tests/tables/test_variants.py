"""Variants: subclasses of an entity, read as what they are, on every target."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stator import (
    Delete,
    Design,
    Entity,
    Get,
    Query,
    after_load,
    attr,
    before_write,
    connect,
    creates,
    find,
    ident,
    read,
    together,
    unique,
    upcast,
    updates,
    version,
    write,
)
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    DesignError,
    ItemMismatch,
    ItemNotFound,
    TransactionFailed,
    UpdateRefused,
)
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget
from stator.tables.db import Db
from tests.targets import Target


class Animal(Entity):
    animal_id: str = ident()
    owner: str
    name: str

    @before_write
    def tidy(self) -> None:
        self.name = self.name.strip()


class Dog(Animal, variant="dog"):
    breed: str
    tricks: list[str] | None = None

    @after_load
    def sit(self) -> None:
        self.tricks = [*(self.tricks or []), "sit"]


class Cat(Animal, variant="cat"):
    indoor: bool = True


class Tag(Entity):
    tag_id: str = ident()


@read(rps=10, returns=3)
def animals_of(owner: str) -> Query[Animal]:
    return find(Animal).where(Animal.owner == owner).order_by(Animal.name)


@read(rps=10, returns=3)
def dogs_of_breed(breed: str) -> Query[Dog]:
    return find(Dog).where(Dog.breed == breed)


@read(rps=1, returns=3)
def dogs_of(owner: str) -> Query[Dog]:
    return find(Dog).where(Dog.owner == owner)


@read(rps=1, returns=3)
def outdoor_of(owner: str) -> Query[Animal]:
    return find(Animal).where(Animal.owner == owner).filter(Cat.indoor == False)  # noqa: E712


@write(rps=3)
def new_dog() -> Any:
    return creates(Dog), updates(Dog.breed)


zoo = Design("zoo", [Animal, Tag], [animals_of, dogs_of_breed, dogs_of, outdoor_of, new_dog])


@pytest.fixture
def db(target: Target) -> Db:
    return target.connect(zoo)


def filled(db: Db) -> None:
    db.create(Dog(animal_id="1", owner="ann", name=" Rex ", breed="collie"))
    db.write_many(
        [
            Cat(animal_id="2", owner="ann", name="Tom", indoor=False),
            Animal(animal_id="3", owner="ann", name="Unknown"),
            Dog(animal_id="4", owner="bob", name="Fido", breed="collie"),
        ]
    )


def test_reads_return_the_variant_that_is_stored(db: Db) -> None:
    filled(db)
    first = db.get_one(Animal, animal_id="1")
    assert isinstance(first, Dog)
    assert (first.name, first.breed, first.tricks) == ("Rex", "collie", ["sit"])
    found = db.fetch(animals_of("ann"))
    assert [type(each) for each in found] == [Dog, Cat, Animal]
    assert [type(each) for each in db.get_many(Animal, ["3", "2", "1"]) if each] == [
        Animal,
        Cat,
        Dog,
    ]
    assert sorted(type(each).__name__ for each in db.scan(Animal, allow=True)) == [
        "Animal",
        "Cat",
        "Dog",
        "Dog",
    ]


def test_a_pattern_of_a_variant_finds_only_that_variant(db: Db) -> None:
    filled(db)
    assert {each.animal_id for each in db.fetch(dogs_of_breed("collie"))} == {"1", "4"}
    [only] = db.fetch(dogs_of("ann"))
    assert only.breed == "collie"
    [cat] = db.fetch(outdoor_of("ann"))
    assert isinstance(cat, Cat)


def test_an_item_of_another_variant_is_not_found_under_a_variant(db: Db) -> None:
    filled(db)
    assert db.get(Cat, animal_id="1") is None
    assert db.get_many(Cat, ["1", "2"])[0] is None
    assert db.snapshot(Get(Cat, animal_id="1"), Get(Dog, animal_id="1"))[0] is None
    assert [each.animal_id for each in db.scan(Cat, allow=True)] == ["2"]
    with pytest.raises(ConditionFailed), db.update(Cat, animal_id="1") as cat:
        cat.name = "Tom"
    with pytest.raises(ConditionFailed):
        db.delete(Cat, animal_id="1")
    with pytest.raises(ItemNotFound):
        db.get_one(Cat, animal_id="1")
    assert db.get(Dog, animal_id="1") is not None


def test_updates_of_a_variant_move_its_index_entry(db: Db) -> None:
    filled(db)
    with db.update(Dog, animal_id="1") as dog:
        dog.breed = "poodle"
    assert [each.animal_id for each in db.fetch(dogs_of_breed("poodle"))] == ["1"]
    stored = db.get_one(Dog, animal_id="1")
    with db.update(stored) as dog:
        dog.breed = "pug"
    assert stored.breed == "pug"
    assert [each.animal_id for each in db.fetch(dogs_of_breed("pug"))] == ["1"]
    db.patch(Dog, {"breed": "collie"}, animal_id="1")
    assert len(db.all(dogs_of_breed("collie"))) == 2


def test_an_item_can_become_another_variant(db: Db) -> None:
    filled(db)
    db.upsert(Cat(animal_id="1", owner="ann", name="Rex"))
    assert not [each for each in db.fetch(dogs_of_breed("collie")) if each.animal_id == "1"]
    item = raw(db, "1")
    assert "breed" not in item
    assert item["_class"] == {"S": "cat"}
    db.put(Animal(animal_id="1", owner="ann", name="Rex"))
    assert type(db.get(Animal, animal_id="1")) is Animal


def test_variants_in_transactions_batches_and_deletes(db: Db) -> None:
    filled(db)
    with db.transaction() as tx:
        tx.create(Dog(animal_id="5", owner="eve", name="Ace", breed="pug"))
        with tx.update(Cat, animal_id="2") as cat:
            cat.indoor = True
        tx.check(Dog, animal_id="4")
    assert db.get_one(Cat, animal_id="2").indoor
    db.write_many([Delete(Dog, animal_id="5")])
    db.delete_many(Animal, ["4"])
    assert db.delete_where(dogs_of("ann")).written == 1
    assert {each.animal_id for each in db.scan(Animal, allow=True)} == {"2", "3"}


def raw(db: Db, animal_id: str) -> dict[str, Any]:
    of = db.context.schema.of(Animal)
    key = of.key_from({"animal_id": animal_id})
    item: dict[str, Any] = db.call("GetItem", {"TableName": of.table.name, "Key": key})["Item"]
    return item


def test_an_unknown_tag_is_named(db: Db) -> None:
    filled(db)
    of = db.context.schema.of(Animal)
    item = raw(db, "1") | {"_class": {"S": "bird"}}
    db.call("PutItem", {"TableName": of.table.name, "Item": item})
    with pytest.raises(ItemMismatch, match="known are dog, cat"):
        db.get(Animal, animal_id="1")


def test_a_create_by_an_update_has_its_tag(target: Target) -> None:
    class Vehicle(Entity):
        number: str = ident()
        wheels: int = 4

    class Truck(Vehicle, variant="truck"):
        load: int = 0

    db = target.connect(Design("fleet", [Vehicle], []))
    with db.update(Truck, or_create=True, number="1") as truck:
        truck.load = 7
    assert db.get(Vehicle, number="1") == Truck(number="1", load=7)
    with pytest.raises(UpdateRefused):
        db.patch(Truck, {"_class": "truck"}, number="1")


def test_variants_have_the_versions_and_unique_fields_of_their_entity(target: Target) -> None:
    class Account(Entity, version=2):
        account_id: str = ident()
        email: str = unique()
        rev: int = version()

    class Business(Account, variant="business"):
        vat: str

    @upcast(Account, 1)
    def lower(fields: dict[str, Any]) -> dict[str, Any]:
        fields["email"] = fields["email"].lower()
        return fields

    db = target.connect(Design("accounts", [Account], []))
    made = db.create(Business(account_id="1", email="A@x", vat="7"))
    of = db.context.schema.of(Account)
    item = db.call("GetItem", {"TableName": of.table.name, "Key": of.key_of(made)})["Item"]
    assert item["_v"] == {"N": "2"}
    del item["_v"]
    db.call("PutItem", {"TableName": of.table.name, "Item": item})
    stored = db.get_one(Account, account_id="1")
    assert isinstance(stored, Business)
    assert (stored.email, stored.vat, stored.rev) == ("a@x", "7", 1)
    stored.vat = "8"
    db.put(stored)
    assert db.get_one(Business, account_id="1").vat == "8"


def test_rows_of_a_load_name_their_variant(tmp_path: Path) -> None:
    rows = [
        {"animal_id": "1", "owner": "ann", "name": "Rex", "_class": "dog", "breed": "pug"},
        {"animal_id": "2", "owner": "ann", "name": "Tom", "_class": "cat", "indoor": False},
        {"animal_id": "3", "owner": "ann", "name": "Any"},
        {"animal_id": "4", "owner": "ann", "name": "Bad", "_class": "bird"},
        {"animal_id": "5", "owner": "ann", "name": "Bad", "_class": "cat", "breed": "pug"},
    ]
    path = tmp_path / "animals.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Engine.open() as engine:
        options = LoadOptions(dead_letters=str(tmp_path / "dead.jsonl"))
        with BulkTarget.open(engine, design=zoo, entity=Animal) as target:
            report = load(str(path), target, options)
        assert (report.written, report.failed) == (3, 2)
        db = connect(zoo, engine)
        assert [type(each) for each in db.fetch(animals_of("ann"))] == [Animal, Dog, Cat]


@pytest.mark.parametrize("wrong", ["", 7])
def test_a_tag_is_a_text(wrong: Any) -> None:
    with pytest.raises(DesignError, match="is not a tag"):

        class Bird(Animal, variant=wrong):
            wings: int


def test_wrong_variants_are_refused() -> None:
    with pytest.raises(DesignError, match="no entity to be a variant of"):

        class Alone(Entity, variant="alone"):
            alone_id: str = ident()

    class Base(Entity):
        base_id: str = ident()
        size: int

    class First(Base, variant="first"):
        note: str

    with pytest.raises(DesignError, match="both have variant='first'"):

        class Again(Base, variant="first"):
            pass

    with pytest.raises(DesignError, match="is a variant itself"):

        class Deep(First, variant="deep"):
            pass

    with pytest.raises(DesignError, match="cannot have a key, index, name or version"):

        class Keyed(Base, variant="keyed", key=("X#{base_id}", "Y")):
            pass

    with pytest.raises(DesignError, match="First is a variant of Base, not an entity"):
        Design("zoo", [Base, First], [])
    with pytest.raises(DesignError, match="together"):
        together(First, Base)
    Design("zoo", [Base], []).plan()
    with pytest.raises(DesignError, match="is declared too late"):

        class Late(Base, variant="late"):
            pass


def test_fields_of_variants_agree() -> None:
    class Base(Entity):
        base_id: str = ident()

    class First(Base, variant="first"):
        note: str

    class Second(Base, variant="second"):
        note: int

    with pytest.raises(DesignError, match="note is a str"):
        Design("zoo", [Base], []).plan()


def test_a_variant_cannot_declare_a_role() -> None:
    class Base(Entity):
        base_id: str = ident()

    class First(Base, variant="first"):
        email: str = unique()

    with pytest.raises(DesignError, match=r"unique\(\), which a variant cannot declare"):
        Design("zoo", [Base], []).plan()


def test_a_subclass_without_a_tag_is_an_entity_of_its_own() -> None:
    @dataclass
    class Mixin:
        colour: str = "red"

    class Puppy(Dog):
        age: int = 0

    plan = Design("zoo", [Puppy], []).plan()
    assert plan.entities[0].name == "Puppy"
    assert attr(Puppy.age).exists().field.owner is Puppy  # type: ignore[attr-defined]


def test_no_update_writes_the_fields_of_a_variant_into_an_item_of_another(db: Db) -> None:
    filled(db)
    before = db.get_one(Animal, animal_id="1")

    def patched() -> None:
        db.patch(Animal, {"indoor": False}, animal_id="1")

    def created_or_updated() -> None:
        with db.update(Cat, animal_id="1", or_create=True) as cat:
            cat.owner, cat.name, cat.indoor = "eve", "Tom", False

    def updated_by_an_object() -> None:
        with db.update(Cat(animal_id="1", owner="ann", name="Rex")) as cat:
            cat.indoor = False

    def updated_by_the_entity() -> None:
        with db.update(Animal, animal_id="1") as animal:
            animal.indoor = False  # type: ignore[attr-defined]

    for refused in (patched, created_or_updated, updated_by_an_object, updated_by_the_entity):
        with pytest.raises(ConditionFailed):
            refused()
        assert db.get_one(Animal, animal_id="1") == before, refused.__name__
    with (
        pytest.raises(UpdateRefused, match="indoor"),
        db.update(Animal, animal_id="9", or_create=True) as animal,
    ):
        animal.owner, animal.name, animal.indoor = "eve", "x", True  # type: ignore[attr-defined]
    db.patch(Animal, {"indoor": True}, animal_id="2")
    cat = db.get_one(Cat, animal_id="2")
    assert cat.indoor
    with db.update(Cat, animal_id="5", or_create=True) as new:
        new.owner, new.name = "eve", "Kit"
    assert db.get_one(Animal, animal_id="5") == Cat(animal_id="5", owner="eve", name="Kit")


def test_every_delete_by_a_variant_spares_items_of_another_class(db: Db) -> None:
    filled(db)
    in_batches = db.delete_many(Dog, ["2", "3", "4"], on_error="collect")
    assert in_batches.written == 1 and len(in_batches.failures) == 2
    written = db.write_many([Delete(Dog, animal_id="2")], on_error="collect")
    assert not written.written and isinstance(written.failures[0].error, ConditionFailed)
    tom = Dog(animal_id="2", owner="ann", name="Tom", breed="x")
    with pytest.raises(ConditionFailed):
        db.delete(tom)
    with pytest.raises(TransactionFailed), db.transaction() as tx:
        tx.delete(tom)
    assert [type(each) for each in db.get_many(Animal, ["2", "3", "4"])] == [
        Cat,
        Animal,
        type(None),
    ]


def test_changes_of_one_item_by_several_classes_stay_in_order(db: Db) -> None:
    tom = Cat(animal_id="2", owner="ann", name="Tom")
    rex = Dog(animal_id="1", owner="ann", name="Rex", breed="collie")
    result = db.write_many(
        [rex, Delete(Dog, animal_id="1"), tom, Delete(Animal, animal_id="2"), rex]
    )
    assert (result.written, result.failures) == (5, [])
    assert [type(each) for each in db.get_many(Animal, ["1", "2"])] == [Dog, type(None)]
