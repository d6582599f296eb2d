"""The document of a design: complete, well formed, and with examples that are real items."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from html import escape
from html.parser import HTMLParser
from typing import Any, Literal
from uuid import UUID
from xml.etree import ElementTree

import msgspec
import pydantic
import pytest

from stator.design.design import Design
from stator.design.documents import Document, document_of, html, markdown
from stator.design.documents.diagram import diagram_of, mermaid
from stator.design.documents.svg import svg
from stator.design.entities.adapters import adapt
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import created, ident, ttl, unique, updated, version
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Only, Query, find
from stator.design.patterns.write_pattern import updates, write
from stator.design.plan.example_items import example_of, item_of
from stator.engine import Engine

from .. import models, shop

DESIGNS = [models.shop(), models.shop("table-per-entity"), models.social(), shop.shop]
DOCUMENTS = [document_of(design) for design in DESIGNS]
_VOID = {"meta", "br", "link", "img", "hr", "input"}


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    street: str
    floors: list[int]


class Everything(Entity):
    key: UUID = ident()
    text: str
    number: int
    ratio: float
    price: Decimal
    yes: bool
    raw: bytes
    at: datetime
    day: date
    hour: time
    colour: Colour
    kind: Literal["a", "b"]
    maybe: str | None = None
    many: list[str] = field(default_factory=list)
    pair: tuple[int, str] = (1, "x")
    names: set[str] = field(default_factory=set)
    numbers: frozenset[int] = frozenset()
    extra: dict[str, Decimal] = field(default_factory=dict)
    place: Place
    places: list[Place] = field(default_factory=list)
    anything: Any = None
    email: str = unique()
    rev: int = version()
    gone: datetime | None = ttl(days=1, default=None)
    made: datetime = created()
    seen: datetime = updated()


# --- examples -------------------------------------------------------------------------------------


def test_an_example_has_a_value_for_every_field_and_comes_back_from_the_wire() -> None:
    made = example_of(Everything)
    wire = info(Everything).codec.encode(made)
    assert set(wire) == set(info(Everything).fields)
    assert info(Everything).codec.decode(wire) == made
    assert example_of(Everything) == made


def test_models_of_other_libraries_have_examples_too() -> None:
    class Person(pydantic.BaseModel):
        person_id: str
        born: date
        nickname: str | None = None

    class Ticket(msgspec.Struct):
        ticket_id: int
        person_id: str

    entities: list[Any] = [adapt(Person, ident="person_id"), adapt(Ticket, ident="ticket_id")]
    design = Design("guests", entities, [])
    document = document_of(design)
    assert [[each.value for each in entity.attributes][-2:] for entity in document.entities] == [
        ["2026-03-14", "nickname-1"],
        ["42", "person-1"],
    ]
    assert [(each.parent, each.child) for each in document.diagram.relations] == [
        ("Person", "Ticket")
    ]


def test_an_example_is_in_the_sparse_indexes_of_its_entity() -> None:
    @read(rps=5, returns=10)
    def shipped(since: datetime) -> Query[shop.Order]:
        return find(shop.Order).where(
            shop.Order.status == shop.Status.SHIPPED, shop.Order.placed_at > since
        )

    @write(rps=1)
    def ship() -> object:
        return updates(shop.Order.status)

    plan = Design("sparse", [shop.Order, shop.User], [shipped, ship]).plan()
    assert any(key.when for key in plan.entity(shop.Order).keys)
    assert example_of(shop.Order, plan.entity(shop.Order)).status is shop.Status.SHIPPED


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_example_items_can_be_put_into_the_tables(design: Design) -> None:
    plan = design.plan()
    with Engine.open() as engine:
        for request in plan.create_table_requests():
            engine.call("CreateTable", request)
        for entity in design.entities:
            own = plan.entity(entity)
            item = item_of(entity, own)
            engine.call("PutItem", {"TableName": own.table, "Item": item})
            assert item.keys() >= {key.name for key in own.keys if key.index is None}


# --- the diagram ----------------------------------------------------------------------------------


def test_entities_belong_together_by_the_names_of_their_fields() -> None:
    diagram = diagram_of(models.shop())
    related = {(each.parent, each.child): each.label for each in diagram.relations}
    assert related["Customer", "Purchase"] == "12 each"
    assert related["Purchase", "Line"] == "3 each"
    assert related["Product", "Review"] == "20 each"
    assert ("Purchase", "Customer") not in related


def test_a_child_has_its_nearest_parent_and_only_owners_are_parents() -> None:
    class Clinic(Entity):
        clinic_id: str = ident()

    class Patient(Entity):
        clinic_id: str = ident()
        patient_id: str = ident()

    class Waiting(Entity):
        clinic_id: str = ident()
        patient_id: str = ident()

    class Chart(Entity):
        clinic_id: str = ident()
        patient_id: str = ident()

    class Visit(Entity):
        clinic_id: str = ident()
        patient_id: str = ident()
        visit_no: int = ident()

    class Sample(Entity):
        barcode: str = ident()
        clinic_id: str
        patient_id: str

    class Result(Entity):
        barcode: str = ident()
        test: str = ident()
        clinic_id: str
        patient_id: str

    everything = [Clinic, Patient, Waiting, Chart, Visit, Sample, Result]
    volumes: Any = {
        Clinic: 400, Patient: 4_800_000, Waiting: 12_000, Chart: 4_800_000, Visit: 96_000_000,
        Sample: 40_000_000, Result: 240_000_000,
    }  # fmt: skip
    for entities in (everything, everything[::-1]):
        diagram = diagram_of(Design("clinic", entities, [], volumes=volumes))
        assert {(each.parent, each.child): each.label for each in diagram.relations} == {
            ("Clinic", "Patient"): "12,000 each",
            ("Patient", "Waiting"): "at most one",
            ("Patient", "Chart"): "one each",
            ("Patient", "Visit"): "20 each",
            ("Patient", "Sample"): "8.33 each",
            ("Sample", "Result"): "6 each",
        }
        assert '||--o| Waiting : "at most one"' in mermaid(diagram)


def test_the_mermaid_text_keeps_to_its_grammar() -> None:
    text = mermaid(diagram_of(Design("all", [Everything, *models.shop().entities], [])))
    lines = text.splitlines()
    assert lines[0] == "erDiagram"
    relation = r'    \w+ \|\|--(o\{|\|\||o\|) \w+ : "[^"]+"'
    attribute = r"        [A-Za-z]\w*(\[\])? \w+( (PK|FK|UK)(, (PK|FK|UK))*)?"
    for line in lines[1:]:
        assert re.fullmatch(rf"{relation}|    \w+ \{{|{attribute}|    \}}", line), line


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_the_drawing_has_every_field_and_no_overlapping_boxes(design: Design) -> None:
    drawing = ElementTree.fromstring(svg(diagram_of(design)))
    texts = "".join(drawing.itertext())
    for entity in design.entities:
        assert info(entity).name in texts
        assert all(name in texts for name in info(entity).fields)
    boxes = [
        tuple(float(each.get(name, "")) for name in ("x", "y", "width", "height"))
        for each in drawing.iter("rect")
    ]
    assert len(boxes) == len(design.entities)
    for at, (x, y, width, height) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[at + 1 :]:
            assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y


def test_entities_that_name_each_other_can_be_drawn() -> None:
    class Left(Entity):
        left_id: str = ident()
        right_id: str

    class Right(Entity):
        right_id: str = ident()
        left_id: str

    assert svg(diagram_of(Design("circle", [Left, Right], []))).count("<rect") == 2


# --- the document ---------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: each.name)
def test_the_markdown_has_every_pattern_entity_and_key_in_whole_tables(document: Document) -> None:
    text = markdown(document)
    for pattern in (*document.reads, *document.writes):
        assert f"**{pattern.name}**" in text
    for entity in document.entities:
        assert f"### {entity.name}\n" in text
        for attribute in entity.attributes:
            assert f"| `{attribute.name}` |" in text
    width = 0
    for line in text.splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        assert width in (0, cells), line
        width = cells


def test_text_from_the_design_cannot_break_out_of_the_page() -> None:
    @read(rps=1)
    def odd(key: UUID) -> Query[Everything]:
        """A | pipe, a `tick`, <script>alert(1)</script> & *stars*."""
        return find(Everything).where(Everything.key == key)

    document = document_of(Design("a<b", [Everything], [odd], names={"a<b": "odd-table"}))
    assert "<script>" not in html(document)
    assert "&lt;script&gt;" in html(document)
    row = next(line for line in markdown(document).splitlines() if "**odd**" in line)
    assert "A \\| pipe, a \\`tick\\`, &lt;script&gt;alert(1)&lt;/script&gt; & \\*stars\\*." in row


class _Balance(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.ids += [str(named["id"])] if "id" in named else []
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Closed by itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: each.name)
def test_the_page_is_well_formed_and_needs_nothing_from_outside(document: Document) -> None:
    page = html(document)
    parser = _Balance()
    parser.feed(page)
    assert parser.open == []
    assert all(link.startswith("#") and link[1:] in parser.ids for link in parser.links)
    assert "url(" not in page and "@import" not in page and "<script" not in page
    assert "prefers-color-scheme: dark" in page
    for pattern in (*document.reads, *document.writes):
        assert pattern.name in page


def test_declared_writes_stand_beside_the_write_patterns() -> None:
    document = document_of(
        Design("few", [Everything], [], writes={Everything: 2}, sizes={Everything: 500})
    )
    [entry] = document.writes
    assert (entry.name, entry.operation, entry.per_second, entry.units) == (
        "writes of Everything",
        "PutItem",
        2,
        4,  # a transaction of the item and the guard of its unique field
    )
    assert "**writes of Everything**" in markdown(document)


def test_the_same_design_gives_the_same_document() -> None:
    assert html(document_of(models.shop())) == html(document_of(models.shop()))
    assert markdown(document_of(models.shop())) == markdown(document_of(models.shop()))


# --- item collections -----------------------------------------------------------------------------


def test_items_of_one_partition_stand_together_in_the_order_of_their_sort_keys() -> None:
    [table] = document_of(models.shop()).tables
    base, *indexes = table.views
    assert (base.partition, base.sort) == ("PK", "SK")
    for view in table.views:
        partitions = [each.partition for each in view.collections]
        assert partitions == sorted(set(partitions)) and partitions
        for collection in view.collections:
            assert [each.sort for each in collection.items] == sorted(
                each.sort for each in collection.items
            )
    assert [view.name for view in indexes] == [each.name for each in table.indexes]
    several = [each for each in base.collections if len({one.entity for one in each.items}) > 1]
    assert several, "a parent and its children share a partition"


def test_an_index_shows_what_it_projects_and_only_items_that_have_its_key() -> None:
    class Post(Entity):
        post_id: str = ident()
        author: str
        at: datetime
        title: str
        text: str
        pinned_at: datetime | None = None

    @read(rps=200, returns=20)
    def headlines(author: str) -> Only[tuple[str, str]]:
        mine = find(Post).where(Post.author == author).newest_first(Post.at).limit(20)
        return mine.only(Post.post_id, Post.title)

    design = Design("blog", [Post], [headlines], sizes={Post: 8_000})
    [table] = document_of(design).tables
    _, index = table.views
    shown = {
        name for each in index.collections for item in each.items for name, _ in item.attributes
    }
    assert "title" in shown and "text" not in shown
    assert index.reads == ("headlines",)


def test_a_filter_can_be_seen() -> None:
    document = document_of(models.shop())
    entry = next(each for each in document.reads if each.filter)
    assert escape(entry.filter) in html(document)
    assert f"filter `{entry.filter}`" in markdown(document)


def test_entities_that_only_share_names_are_not_related() -> None:
    class Driver(Entity):
        driver_id: str = ident()

    class Position(Entity):
        driver_id: str = ident()

    class Flag(Entity):
        project_id: str = ident()
        key: str = ident()

    class Segment(Entity):
        project_id: str = ident()
        key: str = ident()

    relations = document_of(Design("mix", [Driver, Position, Flag, Segment])).diagram.relations
    assert [(each.parent, each.child, each.label) for each in relations] == [
        ("Driver", "Position", "one each")
    ]


def test_the_page_has_a_print_style() -> None:
    page = html(DOCUMENTS[0])
    assert "@media print" in page[page.index("<style>") : page.index("</style>")]
