"""The social model of the user's own notes.

Source: "DynamoDB System Design: The Complete Guide", sections on keys, on the single table and on
many-to-many relations (../shared/seeds/003). Profiles and posts are stored under their user,
hashtags by likes, comments under their post, and tasks are shared between users. The notes write a
shared task twice, once from each side.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from stator import Bundle2, Entity, Query, creates, find, ident, per, read, together, updates, write

from .model import Keys, Model, Wanted

START = datetime(2026, 3, 1, tzinfo=UTC)


class User(Entity):
    user_id: str = ident()
    name: str


class Post(Entity):
    user_id: str = ident()
    posted_at: datetime = ident()
    hashtag: str
    likes: int = 0
    text: str


class Comment(Entity):
    post_id: str = ident()
    commented_at: datetime = ident()
    user_id: str
    text: str


class Assignment(Entity):
    user_id: str = ident()
    task_id: str = ident()


@read(rps=300)
def profile(user_id: str) -> Query[User]:
    return find(User).where(User.user_id == user_id)


@read(rps=200, returns=20)
def posts_of(user_id: str) -> Query[Post]:
    return find(Post).where(Post.user_id == user_id).newest_first(Post.posted_at).limit(20)


@read(rps=20, returns=10)
def posts_between(user_id: str, start: datetime, end: datetime) -> Query[Post]:
    return find(Post).where(Post.user_id == user_id, Post.posted_at >= start, Post.posted_at < end)


@read(rps=50, returns=31)
def home(user_id: str) -> Bundle2[User, Post]:
    return together(User, Post).where(User.user_id == user_id)


@read(rps=30, returns=10)
def popular(hashtag: str) -> Query[Post]:
    return find(Post).where(Post.hashtag == hashtag).order_by(Post.likes, descending=True).limit(10)


@read(rps=100, returns=15)
def comments_of(post_id: str) -> Query[Comment]:
    return find(Comment).where(Comment.post_id == post_id).oldest_first(Comment.commented_at)


@read(rps=40, returns=10)
def tasks_of(user_id: str) -> Query[Assignment]:
    return find(Assignment).where(Assignment.user_id == user_id)


@read(rps=40, returns=5)
def users_on(task_id: str) -> Query[Assignment]:
    return find(Assignment).where(Assignment.task_id == task_id)


@write(rps=20)
def publish() -> object:
    return creates(Post)


@write(rps=50)
def like() -> object:
    return updates(Post.likes)


@write(rps=40)
def comment() -> object:
    return creates(Comment)


@write(rps=5)
def assign() -> object:
    return creates(Assignment)


def objects(chance: random.Random) -> list[Any]:
    users, tasks = ["ann", "bo", "bob"], ["t1", "t#2", "t3"]
    found: list[Any] = [User(user_id=each, name=each) for each in users]
    found += [
        Post(
            user_id=chance.choice(users),
            posted_at=START + timedelta(minutes=at),
            hashtag=chance.choice(["aws", "db"]),
            likes=at * 37 % 101,
            text="x",
        )
        for at in range(45)
    ]
    for at in range(30):
        when = START + timedelta(seconds=at)
        found.append(
            Comment(
                post_id=f"post{at % 4}", commented_at=when, user_id=chance.choice(users), text="y"
            )
        )
    for user in users:
        found += [Assignment(user_id=user, task_id=task) for task in chance.sample(tasks, 2)]
    return found


MODEL = Model(
    name="social",
    entities=(User, Post, Comment, Assignment),
    patterns=(
        profile,
        posts_of,
        posts_between,
        home,
        popular,
        comments_of,
        tasks_of,
        users_on,
        publish,
        like,
        comment,
        assign,
    ),
    volumes={User: 100_000, Post: per(User, 30), Comment: per(Post, 4), Assignment: per(User, 10)},
    keys={
        User: Keys(("USER#{user_id}", "PROFILE")),
        Post: Keys(
            ("USER#{user_id}", "POST#{posted_at}"), {"GSI1": ("HASHTAG#{hashtag}", "LIKES#{likes}")}
        ),
        Comment: Keys(("POST#{post_id}", "COMMENT#{commented_at}")),
        Assignment: Keys(
            ("USER#{user_id}", "TASK#{task_id}"), {"GSI1": ("TASK#{task_id}", "USER#{user_id}")}
        ),
    },
    paths={
        "profile": Wanted("GetItem", "table", ("user_id",)),
        "posts_of": Wanted("Query", "table", ("user_id",), ("posted_at",)),
        "posts_between": Wanted("Query", "table", ("user_id",), ("posted_at",)),
        "home": Wanted("Query", "table", ("user_id",)),
        "popular": Wanted("Query", "index", ("hashtag",), ("likes",)),
        "comments_of": Wanted("Query", "table", ("post_id",), ("commented_at",)),
        "tasks_of": Wanted("Query", "table", ("user_id",)),
        "users_on": Wanted("Query", "index", ("task_id",)),
    },
    objects=objects,
    calls=(
        ("profile", {"user_id": "bo"}),
        ("posts_of", {"user_id": "bo"}),
        ("posts_between", {"user_id": "bob", "start": START, "end": START + timedelta(minutes=30)}),
        ("home", {"user_id": "ann"}),
        ("popular", {"hashtag": "db"}),
        ("comments_of", {"post_id": "post1"}),
        ("tasks_of", {"user_id": "bo"}),
        ("users_on", {"task_id": "t#2"}),
    ),
)
