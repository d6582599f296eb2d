"""A social network.

Sources: "Social network schema design in DynamoDB" in the developer guide, and
aws-samples/aws-dynamodb-examples, schema_design/SchemaExamples/SocialNetwork/README.md. Follows are
written from both sides and timelines are fanned out to followers, so each list is one partition and
there is no index. Counts are separate items, so that likes do not write to posts.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from stator import Bundle2, Entity, Query, creates, find, ident, per, read, together, updates, write

from .model import Keys, Model, Wanted

START = datetime(2026, 3, 1, tzinfo=UTC)


class UserInfo(Entity):
    user_id: str = ident()
    name: str
    image_url: str


class UserCount(Entity):
    user_id: str = ident()
    followers: int = 0
    posts: int = 0


class Follower(Entity):
    user_id: str = ident()
    follower_id: str = ident()


class Following(Entity):
    user_id: str = ident()
    followed_id: str = ident()


class Post(Entity):
    user_id: str = ident()
    post_id: str = ident()
    content: str
    posted_at: datetime


class Like(Entity):
    post_id: str = ident()
    liker_id: str = ident()


class LikeCount(Entity):
    post_id: str = ident()
    likes: int = 0


class TimelineEntry(Entity):
    user_id: str = ident()
    post_id: str = ident()
    author_id: str = ident()


@read(rps=300, returns=2)
def user_page(user_id: str) -> Bundle2[UserInfo, UserCount]:
    return together(UserInfo, UserCount).where(UserInfo.user_id == user_id)


@read(rps=50, returns=100)
def followers_of(user_id: str) -> Query[Follower]:
    return find(Follower).where(Follower.user_id == user_id)


@read(rps=50, returns=100)
def followed_by(user_id: str) -> Query[Following]:
    return find(Following).where(Following.user_id == user_id)


@read(rps=100, returns=30)
def posts_of(user_id: str) -> Query[Post]:
    return find(Post).where(Post.user_id == user_id)


@read(rps=50, returns=50)
def likes_of(post_id: str) -> Query[Like]:
    return find(Like).where(Like.post_id == post_id)


@read(rps=500)
def like_count(post_id: str) -> Query[LikeCount]:
    return find(LikeCount).where(LikeCount.post_id == post_id)


@read(rps=200, returns=50)
def timeline(user_id: str) -> Query[TimelineEntry]:
    return find(TimelineEntry).where(TimelineEntry.user_id == user_id)


@write(rps=20)
def follow() -> object:
    return creates(Follower), creates(Following), updates(UserCount.followers)


@write(rps=10)
def publish() -> object:
    return creates(Post), creates(TimelineEntry, 50), creates(LikeCount)


@write(rps=100)
def like() -> object:
    return creates(Like), updates(LikeCount.likes)


def objects(chance: random.Random) -> list[Any]:
    users = ["12345", "34567", "345"]
    found: list[Any] = []
    for user in users:
        found += [
            UserInfo(user_id=user, name=user, image_url="i"),
            UserCount(user_id=user, followers=2),
        ]
        for other in users:
            if other != user:
                found += [
                    Follower(user_id=user, follower_id=other),
                    Following(user_id=other, followed_id=user),
                ]
    for at in range(12):
        author = chance.choice(users)
        found.append(
            Post(
                user_id=author, post_id=f"p{at}", content="x", posted_at=START + timedelta(hours=at)
            )
        )
        found.append(LikeCount(post_id=f"p{at}", likes=at))
        found += [Like(post_id=f"p{at}", liker_id=user) for user in chance.sample(users, 2)]
        found += [
            TimelineEntry(user_id=user, post_id=f"p{at}", author_id=author)
            for user in users
            if user != author
        ]
    return found


MODEL = Model(
    name="social-network",
    entities=(UserInfo, UserCount, Follower, Following, Post, Like, LikeCount, TimelineEntry),
    patterns=(
        user_page,
        followers_of,
        followed_by,
        posts_of,
        likes_of,
        like_count,
        timeline,
        follow,
        publish,
        like,
    ),
    volumes={
        UserInfo: 1_000_000,
        UserCount: per(UserInfo, 1),
        Follower: per(UserInfo, 50),
        Following: per(UserInfo, 50),
        Post: per(UserInfo, 30),
        Like: per(Post, 10),
        LikeCount: per(Post, 1),
        TimelineEntry: per(Post, 50),
    },
    keys={
        UserInfo: Keys(("u#{user_id}", "info")),
        UserCount: Keys(("u#{user_id}", "count")),
        Follower: Keys(("u#{user_id}#follower", "u#{follower_id}")),
        Following: Keys(("u#{user_id}#following", "u#{followed_id}")),
        Post: Keys(("u#{user_id}#post", "p#{post_id}")),
        Like: Keys(("p#{post_id}#likelist", "u#{liker_id}")),
        LikeCount: Keys(("p#{post_id}#likecount", "count")),
        TimelineEntry: Keys(("u#{user_id}#timeline", "p#{post_id}#u#{author_id}")),
    },
    paths={
        "user_page": Wanted("Query", "table", ("user_id",)),
        "followers_of": Wanted("Query", "table", ("user_id",)),
        "followed_by": Wanted("Query", "table", ("user_id",)),
        "posts_of": Wanted("Query", "table", ("user_id",)),
        "likes_of": Wanted("Query", "table", ("post_id",)),
        "like_count": Wanted("GetItem", "table", ("post_id",)),
        "timeline": Wanted("Query", "table", ("user_id",)),
    },
    objects=objects,
    calls=(
        ("user_page", {"user_id": "345"}),
        ("followers_of", {"user_id": "345"}),
        ("followed_by", {"user_id": "12345"}),
        ("posts_of", {"user_id": "34567"}),
        ("likes_of", {"post_id": "p1"}),
        ("like_count", {"post_id": "p11"}),
        ("timeline", {"user_id": "345"}),
    ),
)
