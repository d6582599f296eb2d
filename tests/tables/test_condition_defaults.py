"""Conditions of writes on fields that the stored item lacks: they see the default, as reads do."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import pytest

from stator import Design, Entity, attr, ident
from stator.errors import ConditionFailed
from stator.tables.db import Db
from tests.targets import Target


class OldPost(Entity, name="Post"):
    post_id: str = ident()
    title: str


class Post(Entity):
    post_id: str = ident()
    title: str
    stars: int = 5
    limit: int = 3
    status: str = "new"
    tags: list[str] = field(default_factory=lambda: ["a"])
    note: str | None = None


@pytest.fixture
def db(target: Target) -> Db:
    target.connect(Design("blog", [OldPost])).put(OldPost(post_id="1", title="t"))
    return target.connect(Design("blog", [Post]))


def holding() -> list[Any]:
    """Conditions that are true for the post as reads show it."""
    return [
        Post.stars == 5,
        Post.stars != 4,
        Post.stars >= 5,
        Post.stars < 6,
        attr(Post.stars).between(1, 5),
        attr(Post.status).is_in(["old", "new"]),
        attr(Post.status).begins_with("n"),
        attr(Post.status).contains("e"),
        attr(Post.tags).contains("a"),
        (Post.stars == 5) & (Post.title == "t"),
        (Post.stars == 1) | (Post.status == "new"),
        Post.stars > Post.limit,
        attr(Post.status).not_exists(),
        Post.note == None,  # noqa: E711
        Post.status != None,  # noqa: E711
    ]


def test_a_condition_treats_a_missing_attribute_as_its_default(db: Db) -> None:
    for condition in holding():
        db.patch(Post, {"title": "t"}, post_id="1", when=condition)
        with pytest.raises(ConditionFailed):
            db.patch(Post, {"title": "t"}, post_id="1", when=~condition)


def test_every_write_and_check_sees_the_default(db: Db) -> None:
    post = db.get_one(Post, post_id="1")
    with db.update(Post, post_id="1", when=Post.stars == 5) as changed:
        changed.title = "u"
    with db.transaction() as tx:
        tx.check(Post, post_id="1", when=Post.status == "new")
    with pytest.raises(ConditionFailed):
        db.delete(Post, post_id="1", when=Post.stars != 5)
    db.put(post, when=Post.status == "new")  # read, then write as long as it is unchanged
    db.delete(Post, post_id="1", when=Post.stars == 5)
    assert db.get(Post, post_id="1") is None


def test_a_default_does_not_stand_for_an_item_that_is_not_there(db: Db) -> None:
    with pytest.raises(ConditionFailed):
        db.put(Post(post_id="2", title="t"), when=Post.stars == 5)


def test_a_stored_value_counts_and_not_the_default(db: Db) -> None:
    db.put(Post(post_id="1", title="t", stars=1, limit=9, status="old"))
    for condition in (Post.stars == 5, Post.status == "new", Post.stars > Post.limit):
        with pytest.raises(ConditionFailed):
            db.patch(Post, {"title": "x"}, post_id="1", when=condition)
