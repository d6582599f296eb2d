"""Pattern objects read items of earlier entity versions, and write current ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stator import Design, Entity, ident, upcast
from stator.errors import ConditionFailed, ItemExists, NewerVersion
from stator.patterns import Links, Rollup, Series, Tree
from stator.tables.db import Db
from tests.targets import Target

BOOK = ("BOOK#{book_id}", "BOOK")
T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Reader(Entity, key=("READER#{reader_id}", "READER")):
    reader_id: str = ident()


class BookV1(Entity, name="Book", key=BOOK):
    book_id: str = ident()
    name: str


class BookV2(Entity, name="Book", key=BOOK, version=2):
    book_id: str = ident()
    title: str = "untitled"


@upcast(BookV2, 1)
def titled(fields: dict[str, Any]) -> dict[str, Any]:
    fields["title"] = fields.pop("name").title()
    return fields


def library(target: Target, book: type[Any]) -> Db:
    return target.connect(Design("library", [Reader, book]))


@pytest.fixture
def former(target: Target) -> Db:
    """The former deployment; it stores book b1."""
    db = library(target, BookV1)
    db.put(Reader(reader_id="r1"))
    db.put(BookV1(book_id="b1", name="emma"))
    return db


def test_a_link_to_an_item_of_an_earlier_version_upgrades_it(target: Target, former: Db) -> None:
    db = library(target, BookV2)
    lent = Links(db, Reader, BookV2, name="lent", copy_right=[BookV2.title])
    reader, book = db.get_one(Reader, reader_id="r1"), db.get_one(BookV2, book_id="b1")

    lent.link(reader, book)

    assert [link.copy for link in lent.of_left("r1")] == [{"title": "Emma"}]
    with pytest.raises(NewerVersion):  # the stored item has the current version now
        former.get_one(BookV1, book_id="b1")


def test_a_link_to_an_object_that_is_out_of_date_still_fails(target: Target, former: Db) -> None:
    db = library(target, BookV2)
    lent = Links(db, Reader, BookV2, name="lent", copy_right=[BookV2.title])
    reader = db.get_one(Reader, reader_id="r1")
    with pytest.raises(ConditionFailed, match="has changed"):
        lent.link(reader, BookV2(book_id="b1", title="Persuasion"))
    assert not list(lent.of_left("r1"))


def test_a_refresh_copies_the_current_shape_of_an_old_item(target: Target, former: Db) -> None:
    db = library(target, BookV2)
    lent = Links(db, Reader, BookV2, name="lent", copy_right=[BookV2.title])
    lent.link(db.get_one(Reader, reader_id="r1"), db.get_one(BookV2, book_id="b1"))
    db.delete(BookV2, book_id="b1")
    former.put(BookV1(book_id="b1", name="persuasion"))

    assert lent.refresh(right="b1") == 1
    assert [link.copy for link in lent.of_left("r1")] == [{"title": "Persuasion"}]


class ReadingV1(Entity, name="Reading"):
    sensor: str = ident()
    at: datetime = ident()
    celsius: int


class ReadingV2(Entity, name="Reading", version=2):
    sensor: str = ident()
    at: datetime = ident()
    kelvin: int


@upcast(ReadingV2, 1)
def in_kelvin(fields: dict[str, Any]) -> dict[str, Any]:
    fields["kelvin"] = int(fields.pop("celsius")) + 273
    return fields


def test_a_series_merges_entries_of_two_versions(target: Target) -> None:
    old = target.connect(Design("weather", [ReadingV1]))
    new = target.connect(Design("weather", [ReadingV2]))
    before = Series(old, ReadingV1, by=ReadingV1.sensor, at=ReadingV1.at, shards=2, name="readings")
    after = Series(new, ReadingV2, by=ReadingV2.sensor, at=ReadingV2.at, shards=2, name="readings")
    for hour in (0, 2):
        before.add(ReadingV1(sensor="s", at=T0 + timedelta(hours=hour), celsius=hour))
    for hour in (1, 3):
        after.add(ReadingV2(sensor="s", at=T0 + timedelta(hours=hour), kelvin=hour))
    assert sorted(each.kelvin for each in after.range("s")) == [1, 3, 273, 275]
    with pytest.raises(NewerVersion):
        list(before.range("s"))


class NodeV1(Entity, name="Node"):
    node_id: str = ident()
    size: int = 0


class NodeV2(Entity, name="Node", version=2):
    node_id: str = ident()
    bytes_used: int = 0


@upcast(NodeV2, 1)
def in_bytes(fields: dict[str, Any]) -> dict[str, Any]:
    fields["bytes_used"] = int(fields.pop("size", 0)) * 1024
    return fields


def test_a_tree_reads_and_moves_nodes_of_an_earlier_version(target: Target) -> None:
    old = Tree(target.connect(Design("disk", [NodeV1])), NodeV1, name="files")
    new = Tree(target.connect(Design("disk", [NodeV2])), NodeV2, name="files")
    old.add(NodeV1(node_id="root", size=1))
    old.add(NodeV1(node_id="a", size=2), parent="root")
    old.add(NodeV1(node_id="b", size=3), parent="root")
    new.add(NodeV2(node_id="c", bytes_used=7), parent="a")
    new.move("a", "b")
    found = {node.entity.node_id: node.entity.bytes_used for node in new.descendants()}
    assert found == {"root": 1024, "a": 2048, "b": 3072, "c": 7}


class BookLess(Entity, name="Book", key=BOOK):
    book_id: str = ident()


class BookMore(Entity, name="Book", key=BOOK):
    book_id: str = ident()
    level: int = 7
    shelf: str | None = "north"


def test_links_take_a_missing_attribute_as_the_default_of_its_field(target: Target) -> None:
    former, db = library(target, BookLess), library(target, BookMore)
    lent = Links(db, Reader, BookMore, name="lent", copy_right=[BookMore.level, BookMore.shelf])
    db.put(Reader(reader_id="r1"))
    former.put(BookLess(book_id="b1"))
    reader, book = db.get_one(Reader, reader_id="r1"), db.get_one(BookMore, book_id="b1")
    defaults = {"level": 7, "shelf": "north"}

    lent.link(reader, book)
    assert [link.copy for link in lent.of_left("r1")] == [defaults]
    assert lent.refresh(right="b1") == 0
    assert [link.copy for link in lent.of_left("r1")] == [defaults]
    with pytest.raises(ConditionFailed, match="has changed"):
        lent.link(reader, BookMore(book_id="b1", level=8))
    with pytest.raises(ConditionFailed, match="has changed"):
        lent.link(reader, BookMore(book_id="b1", shelf=None))


def test_an_earlier_deployment_does_not_overwrite_newer_nodes_and_readings(target: Target) -> None:
    db = library(target, BookV2)
    before, after = Tree(db, BookV1, name="books"), Tree(db, BookV2, name="books")
    after.add(BookV2(book_id="b1", title="Emma"))
    with pytest.raises(NewerVersion):
        before.update(BookV1(book_id="b1", name="persuasion"))
    node = after.get("b1")
    assert node is not None
    assert node.entity.title == "Emma"

    old: Any = Series(db, ReadingV1, by="sensor", at="at", name="r")
    new: Any = Series(db, ReadingV2, by="sensor", at="at", name="r")
    new.replace(ReadingV2(sensor="s", at=T0, kelvin=300))
    with pytest.raises(NewerVersion):
        old.replace(ReadingV1(sensor="s", at=T0, celsius=1))
    with pytest.raises(NewerVersion):
        old.add(ReadingV1(sensor="s", at=T0, celsius=1))
    assert [each.kelvin for each in new.range("s")] == [300]
    new.add(ReadingV2(sensor="s", at=T0, kelvin=302))  # of the same version: it is replaced
    assert [each.kelvin for each in new.range("s")] == [302]
    new.replace(ReadingV2(sensor="s", at=T0, kelvin=301))
    old.replace(ReadingV1(sensor="s", at=T0 + timedelta(hours=1), celsius=1))
    new.replace(ReadingV2(sensor="s", at=T0 + timedelta(hours=1), kelvin=275))
    assert sorted(each.kelvin for each in new.range("s")) == [275, 301]


def test_the_same_reading_is_written_again_after_an_upcast(target: Target) -> None:
    db = target.connect(Design("weather", [ReadingV1]))
    old: Any = Series(
        db, ReadingV1, by="sensor", at="at", name="r", rollups=[Rollup("day", of=ReadingV1.celsius)]
    )
    new: Any = Series(
        db, ReadingV2, by="sensor", at="at", name="r", rollups=[Rollup("day", of=ReadingV2.kelvin)]
    )
    old.add(ReadingV1(sensor="s", at=T0, celsius=1))
    new.add(ReadingV2(sensor="s", at=T0, kelvin=274))
    with pytest.raises(ItemExists):
        new.add(ReadingV2(sensor="s", at=T0, kelvin=275))
    new.add(ReadingV2(sensor="s", at=T0 + timedelta(hours=1), kelvin=300))
    with pytest.raises(NewerVersion):
        old.add(ReadingV1(sensor="s", at=T0 + timedelta(hours=1), celsius=27))
