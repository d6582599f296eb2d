"""Published: AWS's social network schema, with a feed by likes added."""

from datetime import datetime

from stator import (
    Design,
    Entity,
    Query,
    counter,
    creates,
    find,
    ident,
    per,
    read,
    ttl,
    updates,
    write,
)

SOURCE = (
    "AWS developer guide, social network schema. From memory; confidence high. Followers, "
    "followed, posts, "
    "likes and the timeline are each a collection of their own with the suffix of its kind in the "
    "partition; counts are items of their own. No index. The feed by likes is an addition of mine."
)


class Profile(Entity):
    user_id: str = ident()
    name: str
    followers: int = counter()
    following: int = counter()
    posts: int = counter()


class Follower(Entity):
    user_id: str = ident()
    follower_id: str = ident()


class Following(Entity):
    user_id: str = ident()
    followed_id: str = ident()


class Post(Entity):
    user_id: str = ident()
    post_id: str = ident()  # a ULID
    text: str
    image_url: str


class LikeCount(Entity):
    post_id: str = ident()
    likes: int = counter()


class Like(Entity):
    post_id: str = ident()
    user_id: str = ident()


class TimelineEntry(Entity):
    user_id: str = ident()
    post_id: str = ident()
    author_id: str = ident()
    expires: datetime | None = ttl(days=30, default=None)


class TopPost(Entity):
    topic: str = ident()
    post_id: str = ident()
    likes: int  # copied every minute, not at every like


@read(rps=2_000)
def profile(user_id: str) -> Query[Profile]:
    return find(Profile).where(Profile.user_id == user_id)


@read(rps=50, returns=100)
def followers_of(user_id: str) -> Query[Follower]:
    return find(Follower).where(Follower.user_id == user_id).limit(100)


@read(rps=80, returns=100)
def followed_by(user_id: str) -> Query[Following]:
    return find(Following).where(Following.user_id == user_id).limit(100)


@read(rps=100)
def follows(user_id: str, followed_id: str) -> Query[Following]:
    return find(Following).where(Following.user_id == user_id, Following.followed_id == followed_id)


@read(rps=300, returns=20)
def posts_of(user_id: str) -> Query[Post]:
    return find(Post).where(Post.user_id == user_id).newest_first(Post.post_id).limit(20)


@read(rps=1_500)
def post(user_id: str, post_id: str) -> Query[Post]:
    return find(Post).where(Post.user_id == user_id, Post.post_id == post_id)


@read(rps=100, returns=12)
def likers_of(post_id: str) -> Query[Like]:
    return find(Like).where(Like.post_id == post_id).limit(50)


@read(rps=800)
def likes_it(post_id: str, user_id: str) -> Query[Like]:
    return find(Like).where(Like.post_id == post_id, Like.user_id == user_id)


@read(rps=2_000)
def like_count(post_id: str) -> Query[LikeCount]:
    return find(LikeCount).where(LikeCount.post_id == post_id)


@read(rps=1_000, returns=30)
def timeline(user_id: str) -> Query[TimelineEntry]:
    return (
        find(TimelineEntry)
        .where(TimelineEntry.user_id == user_id)
        .newest_first(TimelineEntry.post_id)
        .limit(30)
    )


@read(rps=100, returns=30)
def most_liked(topic: str) -> Query[TopPost]:
    return (
        find(TopPost)
        .where(TopPost.topic == topic)
        .order_by(TopPost.likes, descending=True)
        .limit(30)
    )


@write(rps=30)
def publish() -> object:
    return creates(Post), creates(LikeCount), updates(Profile.posts)


@write(rps=3_000)
def fan_out() -> object:
    return creates(TimelineEntry)


@write(rps=400)
def like() -> object:
    return creates(Like), updates(LikeCount.likes)


@write(rps=30)
def follow() -> object:
    return (
        creates(Follower),
        creates(Following),
        updates(Profile.followers),
        updates(Profile.following),
    )


@write(rps=5)
def refresh_top() -> object:
    return updates(TopPost.likes)


design = Design(
    "aws_social",
    [Profile, Follower, Following, Post, LikeCount, Like, TimelineEntry, TopPost],
    [
        profile,
        followers_of,
        followed_by,
        follows,
        posts_of,
        post,
        likers_of,
        likes_it,
        like_count,
        timeline,
        most_liked,
        publish,
        fan_out,
        like,
        follow,
        refresh_top,
    ],
    volumes={
        Profile: 1_000_000,
        Follower: per(Profile, 100),
        Following: per(Profile, 100),
        Post: per(Profile, 30),
        LikeCount: per(Post, 1),
        Like: per(Post, 12),
        TimelineEntry: per(Profile, 300),
        TopPost: 20_000,
    },
    sizes={
        Profile: 300,
        Follower: 90,
        Following: 90,
        Post: 600,
        LikeCount: 70,
        Like: 90,
        TimelineEntry: 120,
        TopPost: 110,
    },
)

EXPECTED = {
    "max_indexes": 1,
    "published_indexes": 0,
    "entities": {
        "Profile": {"partition": ["user_id"], "sort": []},
        "Follower": {"partition": ["user_id"], "sort": ["follower_id"]},
        "Following": {"partition": ["user_id"], "sort": ["followed_id"]},
        "Post": {"partition": ["user_id"], "sort": ["post_id"]},
        "LikeCount": {"partition": ["post_id"], "sort": []},
        "Like": {"partition": ["post_id"], "sort": ["user_id"]},
        "TimelineEntry": {"partition": ["user_id"], "sort": ["post_id", "author_id"]},
        "TopPost": {
            "partition": ["topic", "post_id"],
            "sort": [],
            "or": [{"partition": ["topic"], "sort": ["post_id"]}],
        },
    },
    "patterns": {
        "profile": {"by": "base"},
        "followers_of": {"by": "base"},
        "followed_by": {"by": "base"},
        "follows": {"by": "base"},
        "posts_of": {"by": "base"},
        "post": {"by": "base"},
        "likers_of": {"by": "base"},
        "likes_it": {"by": "base"},
        "like_count": {"by": "base"},
        "timeline": {"by": "base"},
        "most_liked": {"by": "index", "partition": ["topic"], "sort": ["likes"]},
    },
    "no_index_on": ["TimelineEntry", "Like", "LikeCount"],
}
WHY = {
    "Follower": "Two entities instead of one with an inverted index: AWS writes both "
    "directions; one "
    "entity with an index would cost the same number of write units.",
    "LikeCount": "The count lives apart from the post, so that a like does not rewrite 600 "
    "bytes and no "
    "list is keyed by a number that changes 400 times a second.",
    "most_liked": "Index on a copy that is refreshed now and then, never on the live counter.",
}
