"""Filters of patterns on fields that stored items lack: they see the default, as reads do."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from stator import Count, Design, Entity, Query, attr, find, ident, read
from stator.design.patterns.pattern import Pattern
from stator.tables.db import Db
from tests.targets import Target


@dataclass
class Look:
    colour: str = "red"
    sizes: list[int] = field(default_factory=lambda: [1, 2])


class Post(Entity):
    blog: str = ident()
    post_id: str = ident()
    title: str
    stars: int = 5
    limit: int = 3
    status: str = "new"
    tags: list[str] = field(default_factory=lambda: ["a"])
    look: Look = field(default_factory=Look)
    note: str | None = None
    colour: str | None = "red"
    token: uuid.UUID = field(default_factory=uuid.uuid4)


Condition = Callable[[Any, Any], Any]
CONDITIONS: dict[str, tuple[Condition, Any, Any]] = {
    # a condition, an argument for which the default passes, and one for which it does not
    "equal": (lambda n, t: Post.stars == n, 5, 4),
    "not_equal": (lambda n, t: Post.stars != n, 4, 5),
    "less": (lambda n, t: Post.stars < n, 6, 5),
    "at_most": (lambda n, t: Post.stars <= n, 5, 4),
    "more": (lambda n, t: Post.stars > n, 4, 5),
    "at_least": (lambda n, t: Post.stars >= n, 5, 6),
    "between": (lambda n, t: attr(Post.stars).between(1, n), 5, 4),
    "one_of": (lambda n, t: attr(Post.stars).is_in([1, n]), 5, 4),
    "begins": (lambda n, t: attr(Post.status).begins_with(t), "ne", "nw"),
    "contains_text": (lambda n, t: attr(Post.status).contains(t), "ew", "x"),
    "contains": (lambda n, t: attr(Post.tags).contains(t), "a", "b"),
    "fields": (lambda n, t: (Post.stars > Post.limit) & (Post.stars == n), 5, 3),
    "both": (lambda n, t: (Post.title == "t") & (Post.stars == n), 5, 1),
    "either": (lambda n, t: (Post.title == "u") | (Post.status == t), "new", "old"),
    "inverse": (lambda n, t: ~(Post.stars == n), 4, 5),
    "nested": (lambda n, t: Post.look.colour == t, "red", "blue"),
    "nested_other": (lambda n, t: Post.look.colour != t, "blue", "red"),
    "optional": (lambda n, t: Post.colour == t, "red", "blue"),
}  # fmt: skip


def declared(name: str, condition: Condition) -> Pattern[..., Any]:
    """A pattern with this filter, in a function whose argument has the type it is compared with."""
    wants_text = isinstance(CONDITIONS[name][1], str)

    def with_number(blog: str, n: int) -> Query[Post]:
        return find(Post).where(Post.blog == blog).filter(condition(n, ""))

    def with_text(blog: str, t: str) -> Query[Post]:
        return find(Post).where(Post.blog == blog).filter(condition(0, t))

    made = with_text if wants_text else with_number
    made.__name__ = name
    return read(rps=1)(made)


def constant(name: str, condition: Condition, at: int) -> Pattern[..., Any]:
    value = CONDITIONS[name][1 + at]

    def with_constant(blog: str) -> Query[Post]:
        return find(Post).where(Post.blog == blog).filter(condition(value, value))

    with_constant.__name__ = f"{name}_{at}"
    return read(rps=1)(with_constant)


ASKED = {name: declared(name, each[0]) for name, each in CONDITIONS.items()}
FIXED = {(name, at): constant(name, each[0], at) for name, each in CONDITIONS.items()
         for at in (0, 1)}  # fmt: skip


@read(rps=1)
def listed(blog: str, options: list[int]) -> Query[Post]:
    return find(Post).where(Post.blog == blog).filter(attr(Post.stars).is_in(options))


@read(rps=1)
def rated(blog: str, stars: int) -> Count[Post]:
    return find(Post).where(Post.blog == blog).filter(Post.stars == stars).count()


@read(rps=1, allow_scan=True)
def anywhere(status: str) -> Query[Post]:
    return find(Post).filter(Post.status == status)


@read(rps=1)
def unmarked(blog: str) -> Query[Post]:
    return find(Post).where(Post.blog == blog).filter(attr(Post.status).not_exists())


@read(rps=1)
def tokened(blog: str, token: uuid.UUID) -> Query[Post]:
    return find(Post).where(Post.blog == blog).filter(Post.token == token)


DESIGN = Design(
    "blog", [Post], [*ASKED.values(), *FIXED.values(), listed, rated, anywhere, unmarked, tokened]
)
PLAN = DESIGN.plan()


@pytest.fixture
def db(target: Target) -> Db:
    """One item without the new fields, and one with other values in all of them."""
    db = target.connect(DESIGN, plan=PLAN)
    of = db.context.schema.of(Post)
    old = of.item(Post(blog="b", post_id="1", title="t"))
    for name in ("stars", "limit", "status", "tags", "look", "colour", "token"):
        del old[name]
    db.call("PutItem", {"TableName": of.table.name, "Item": old})
    db.put(Post(
        blog="b", post_id="2", title="x", stars=-100, limit=1000, status="-", tags=[],
        look=Look("-"), colour=None,
    ))  # fmt: skip
    return db


def found(db: Db, query: Any) -> set[str]:
    return {each.post_id for each in db.all(query)}


def test_a_filter_treats_a_missing_attribute_as_its_default(db: Db) -> None:
    for name, (_, passing, failing) in CONDITIONS.items():
        assert "1" in found(db, ASKED[name]("b", passing)), name
        assert "1" not in found(db, ASKED[name]("b", failing)), name
        assert "1" in found(db, FIXED[name, 0]("b")), name
        assert "1" not in found(db, FIXED[name, 1]("b")), name


def test_a_filter_agrees_with_the_items_that_a_read_returns(db: Db) -> None:
    """Writing an item back as it was read changes nothing about what finds it."""
    asked = [
        ASKED[name]("b", value) for name, (_, *values) in CONDITIONS.items() for value in values
    ]
    before = [found(db, each) for each in asked]
    db.put(db.get_one(Post, blog="b", post_id="1"))
    assert [found(db, each) for each in asked] == before


def test_lists_counts_scans_and_writes_by_pattern_see_the_default(db: Db) -> None:
    assert found(db, listed("b", [1, 5])) == {"1"}
    assert found(db, listed("b", [1, 4])) == set()
    assert db.count(rated("b", 5)) == 1
    assert found(db, anywhere("new")) == {"1"}
    assert found(db, unmarked("b")) == {"1"}  # what is asked is the attribute itself
    result = db.update_where(ASKED["equal"]("b", 5), lambda post: setattr(post, "title", "u"))
    assert (result.written, result.skipped) == (1, 0)
    assert db.get_one(Post, blog="b", post_id="1").title == "u"
    preview = db.delete_where(ASKED["equal"]("b", 5), dry_run=True)
    assert preview.count == 1
    assert db.delete_where(ASKED["equal"]("b", 5)).written == 1
    assert db.get(Post, blog="b", post_id="1") is None


def test_a_default_that_differs_every_time_stands_for_no_item(db: Db) -> None:
    assert found(db, tokened("b", uuid.uuid4())) == set()
    assert "attribute_not_exists" not in str(db.explain(tokened("b", uuid.uuid4())))


def test_the_plan_and_the_explanation_show_what_is_sent(db: Db) -> None:
    shown = str(db.explain(ASKED["equal"]("b", 5)))
    assert "attribute_not_exists" in shown
    assert "attribute_not_exists" in str(db.explain(FIXED["equal", 0]("b")))
    assert "attribute_not_exists" not in str(db.explain(FIXED["equal", 1]("b")))
