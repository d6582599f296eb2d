"""Designs after the ones that articles show: a shop, a social network, router tests.

With objects to fill them.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

from stator.design.design import Design, Layout, per
from stator.design.entities.conditions import attr
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident, unique
from stator.design.patterns.pattern import Pattern, read
from stator.design.patterns.query import Bundle2, Count, Query, find, together
from stator.design.patterns.write_pattern import WritePattern, creates, deletes, updates, write
from stator.design.value_facts import share

START = datetime(2026, 3, 1, tzinfo=UTC)


class State(Enum):
    OPEN = "open"
    PAID = "paid"
    SENT = "sent"


# --- a shop ---------------------------------------------------------------------------------------


class Customer(Entity):
    user_id: str = ident()
    email: str = unique()
    name: str


class Product(Entity):
    sku: str = ident()
    category: str
    price: Decimal
    stock: int = 0


class Review(Entity):
    sku: str = ident()
    user_id: str = ident()
    stars: int
    text: str = ""


class Purchase(Entity):
    order_id: str = ident()
    user_id: str
    placed_at: datetime
    state: State = State.OPEN
    total: Decimal


class Line(Entity):
    order_id: str = ident()
    sku: str = ident()
    sold_at: datetime
    quantity: int


@read(rps=200)
def customer_by_id(user_id: str) -> Query[Customer]:
    return find(Customer).where(Customer.user_id == user_id)


@read(rps=20)
def customer_by_email(email: str) -> Query[Customer]:
    return find(Customer).where(Customer.email == email)


@read(rps=100, returns=10)
def purchases_of(user_id: str) -> Query[Purchase]:
    return (
        find(Purchase).where(Purchase.user_id == user_id).newest_first(Purchase.placed_at).limit(10)
    )


@read(rps=10, returns=5)
def purchases_between(user_id: str, start: datetime, end: datetime) -> Query[Purchase]:
    return find(Purchase).where(
        Purchase.user_id == user_id, Purchase.placed_at >= start, Purchase.placed_at < end
    )


@read(rps=50)
def purchase_by_id(order_id: str) -> Query[Purchase]:
    return find(Purchase).where(Purchase.order_id == order_id)


@read(rps=5, returns=100)
def purchases_in_state(state: State, since: datetime) -> Query[Purchase]:
    return (
        find(Purchase)
        .where(Purchase.state == state, Purchase.placed_at > since)
        .oldest_first(Purchase.placed_at)
    )


@read(rps=60, returns=4)
def order_page(order_id: str) -> Bundle2[Purchase, Line]:
    return together(Purchase, Line).where(Purchase.order_id == order_id)


@read(rps=10, returns=50)
def sales_of(sku: str, start: datetime, end: datetime) -> Query[Line]:
    return find(Line).where(Line.sku == sku, attr(Line.sold_at).between(start, end))


@read(rps=30, returns=20)
def product_page(sku: str) -> Bundle2[Product, Review]:
    return together(Product, Review).where(Product.sku == sku)


@read(rps=30, returns=30)
def cheap_products(category: str, below: Decimal) -> Query[Product]:
    return (
        find(Product)
        .where(Product.category == category, Product.price < below)
        .order_by(Product.price)
    )


@read(rps=2, returns=3)
def good_reviews(sku: str) -> Query[Review]:
    return find(Review).where(Review.sku == sku).filter(Review.stars >= 4)


@read(rps=1, returns=100)
def count_open() -> Count[Purchase]:
    return find(Purchase).where(Purchase.state == State.OPEN).count()


@write(rps=30)
def place_order() -> object:
    return creates(Purchase), creates(Line, 3)


@write(rps=30)
def move_order() -> object:
    return updates(Purchase.state)


@write(rps=5)
def reprice() -> object:
    return updates(Product.price, Product.stock)


@write(rps=1)
def forget_customer() -> object:
    return deletes(Customer)


SHOP: tuple[list[type[Entity]], list[Pattern[..., Any] | WritePattern]] = (
    [Customer, Product, Review, Purchase, Line],
    [
        customer_by_id,
        customer_by_email,
        purchases_of,
        purchases_between,
        purchase_by_id,
        purchases_in_state,
        order_page,
        sales_of,
        product_page,
        cheap_products,
        good_reviews,
        count_open,
        place_order,
        move_order,
        reprice,
        forget_customer,
    ],
)


def shop(layout: Layout = "single-table", **options: Any) -> Design:
    volumes: dict[type[Entity], Any] = {
        Customer: 10_000,
        Product: 2_000,
        Review: per(Product, 20),
        Purchase: per(Customer, 12),
        Line: per(Purchase, 3),
    }
    facts = [share(Purchase.state == State.OPEN, 0.001)]
    return Design("shop", *SHOP, volumes=volumes, facts=facts, layout=layout, **options)


def shop_objects(chance: random.Random) -> list[Any]:
    users, skus = [f"u#{at}" for at in range(6)], [f"sku {at}" for at in range(5)]
    found: list[Any] = [
        Customer(user_id=user, email=f"{user}@x.org", name=user.upper()) for user in users
    ]
    for sku in skus:
        price = Decimal(chance.randrange(1, 3000)) / 100
        found.append(Product(sku=sku, category=chance.choice(["tea", "tea#pots"]), price=price))
        found += [
            Review(sku=sku, user_id=user, stars=chance.randrange(1, 6))
            for user in chance.sample(users, 3)
        ]
    for at in range(40):
        placed = START + timedelta(hours=chance.randrange(200))
        order = Purchase(
            order_id=f"o{at}",
            user_id=chance.choice(users),
            placed_at=placed,
            state=chance.choice(list(State)),
            total=Decimal(at),
        )
        found.append(order)
        found += [
            Line(order_id=order.order_id, sku=sku, sold_at=placed, quantity=chance.randrange(1, 9))
            for sku in chance.sample(skus, chance.randrange(1, 4))
        ]
    return found


SHOP_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("customer_by_id", {"user_id": "u#2"}),
    ("customer_by_id", {"user_id": "nobody"}),
    ("customer_by_email", {"email": "u#4@x.org"}),
    *(("purchases_of", {"user_id": f"u#{at}"}) for at in range(6)),
    ("purchases_between", {"user_id": "u#1", "start": START, "end": START + timedelta(hours=100)}),
    (
        "purchases_between",
        {
            "user_id": "u#3",
            "start": START + timedelta(hours=50),
            "end": START + timedelta(hours=150),
        },
    ),
    ("purchase_by_id", {"order_id": "o7"}),
    *(
        ("purchases_in_state", {"state": state, "since": START + timedelta(hours=20)})
        for state in State
    ),
    *(("order_page", {"order_id": f"o{at}"}) for at in range(5)),
    *(
        ("sales_of", {"sku": f"sku {at}", "start": START, "end": START + timedelta(hours=99)})
        for at in range(3)
    ),
    *(("product_page", {"sku": f"sku {at}"}) for at in range(5)),
    *(
        ("cheap_products", {"category": name, "below": Decimal("15.5")})
        for name in ("tea", "tea#pots")
    ),
    *(("good_reviews", {"sku": f"sku {at}"}) for at in range(5)),
    ("count_open", {}),
]


# --- a social network -----------------------------------------------------------------------------


class Member(Entity):
    handle: str = ident()
    name: str
    born: date


class Post(Entity):
    post_id: UUID = ident()
    handle: str
    at: datetime
    likes: int = 0
    hashtag: str | None = None


class Comment(Entity):
    post_id: UUID = ident()
    comment_id: int = ident()
    author: str
    at: datetime
    hidden: bool = False


class Follow(Entity):
    follower: str = ident()
    followed: str = ident()
    since: date


@read(rps=300)
def member(handle: str) -> Query[Member]:
    return find(Member).where(Member.handle == handle)


@read(rps=200, returns=20)
def timeline(handle: str, count: int) -> Query[Post]:
    return find(Post).where(Post.handle == handle).newest_first(Post.at).limit(count)


@read(rps=40, returns=21)
def home(handle: str) -> Bundle2[Member, Post]:
    return together(Member, Post).where(Member.handle == handle)


@read(rps=30, returns=10)
def popular(hashtag: str, over: int) -> Query[Post]:
    return (
        find(Post)
        .where(Post.hashtag == hashtag, Post.likes > over)
        .order_by(Post.likes, descending=True)
    )


@read(rps=100, returns=15, consistent=True)
def comments_of(post_id: UUID, after: int) -> Query[Comment]:
    return find(Comment).where(Comment.post_id == post_id, Comment.comment_id > after)


@read(rps=5, returns=5, consistent=True)
def latest_comments(post_id: UUID) -> Query[Comment]:
    return find(Comment).where(Comment.post_id == post_id).newest_first(Comment.at).limit(5)


@read(rps=2, returns=5)
def hidden_by(author: str) -> Query[Comment]:
    return find(Comment).where(Comment.author == author, Comment.hidden == True)  # noqa: E712


@read(rps=20, returns=50)
def followers(followed: str) -> Query[Follow]:
    return find(Follow).where(Follow.followed == followed)


@read(rps=20, returns=50)
def following(follower: str, prefix: str) -> Query[Follow]:
    return find(Follow).where(
        Follow.follower == follower, attr(Follow.followed).begins_with(prefix)
    )


@read(rps=50)
def follows(follower: str, followed: str) -> Query[Follow]:
    return find(Follow).where(Follow.follower == follower, Follow.followed == followed)


@write(rps=50)
def like() -> object:
    return updates(Post.likes)


@write(rps=20)
def post() -> object:
    return creates(Post)


@write(rps=1)
def hide() -> object:
    return updates(Comment.hidden)


def social(layout: Layout = "single-table", **options: Any) -> Design:
    patterns: list[Any] = [
        member,
        timeline,
        home,
        popular,
        comments_of,
        latest_comments,
        hidden_by,
        followers,
        following,
        follows,
        like,
        post,
        hide,
    ]
    volumes: dict[type[Entity], Any] = {
        Member: 100_000, Post: per(Member, 30), Comment: per(Post, 4), Follow: per(Member, 50),
    }  # fmt: skip
    return Design(
        "social",
        [Member, Post, Comment, Follow],
        patterns,
        volumes=volumes,
        layout=layout,
        **options,
    )


def social_objects(chance: random.Random) -> list[Any]:
    handles = ["ann", "bob", "bo", "c d", "éva"]
    found: list[Any] = [Member(handle=each, name=each, born=date(1990, 1, 1)) for each in handles]
    for at in range(30):
        post_id = UUID(int=at)
        found.append(
            Post(
                post_id=post_id,
                handle=chance.choice(handles),
                at=START + timedelta(minutes=chance.randrange(500)),
                likes=chance.choice([0, 3, 9, 10, 11, 100, 2000]),
                hashtag=chance.choice([None, "aws", "db"]),
            )
        )
        found += [
            Comment(
                post_id=post_id,
                comment_id=number * 7,
                author=chance.choice(handles),
                at=START + timedelta(minutes=chance.randrange(500)),
                hidden=chance.random() < 0.4,
            )
            for number in range(-2, chance.randrange(12))
        ]
    for follower in handles:
        for followed in chance.sample(handles, 3):
            found.append(Follow(follower=follower, followed=followed, since=date(2026, 1, 1)))
    return found


SOCIAL_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("member", {"handle": "éva"}),
    *(("timeline", {"handle": each, "count": 3}) for each in ("ann", "bo", "bob", "c d")),
    *(("home", {"handle": each}) for each in ("ann", "bo", "bob", "éva")),
    *(("popular", {"hashtag": tag, "over": over}) for tag in ("aws", "db") for over in (0, 9, 10)),
    *(
        ("comments_of", {"post_id": UUID(int=at), "after": after})
        for at in (1, 2)
        for after in (-7, 0, 50)
    ),
    *(("latest_comments", {"post_id": UUID(int=at)}) for at in range(4)),
    *(("hidden_by", {"author": each}) for each in ("ann", "bob")),
    *(("followers", {"followed": each}) for each in ("ann", "bo")),
    *(("following", {"follower": each, "prefix": "bo"}) for each in ("ann", "bo", "éva")),
    ("follows", {"follower": "ann", "followed": "bob"}),
]


# --- router tests ---------------------------------------------------------------------------------


class Router(Entity):
    router_id: int = ident()
    isp: str
    region: Literal["US-WEST", "US-EAST", "EU"]


class Probe(Entity):
    router_id: int = ident()
    at: datetime = ident()
    kind: Literal["latency", "throughput"]
    ok: bool = True
    latency_ms: float = 0.0


@read(rps=300, returns=24)
def probes_between(router_id: int, start: datetime, end: datetime) -> Query[Probe]:
    return find(Probe).where(Probe.router_id == router_id, Probe.at >= start, Probe.at < end)


@read(rps=100)
def last_probe(router_id: int) -> Query[Probe]:
    return find(Probe).where(Probe.router_id == router_id).newest_first().limit(1)


@read(rps=1, returns=50)
def failures_since(start: datetime) -> Query[Probe]:
    return find(Probe).where(Probe.ok == False, Probe.at >= start).newest_first()  # noqa: E712


@read(rps=5, returns=10)
def slow_probes(router_id: int, over: float) -> Query[Probe]:
    return find(Probe).where(
        Probe.router_id == router_id, Probe.kind == "latency", Probe.latency_ms > over
    )


@read(rps=5, returns=1000)
def routers_of(isp: str, region: str) -> Query[Router]:
    return find(Router).where(Router.isp == isp, Router.region == region)


@read(rps=20)
def router(router_id: int) -> Query[Router]:
    return find(Router).where(Router.router_id == router_id)


@write(rps=9000)
def probe() -> object:
    return creates(Probe)


def routers(layout: Layout = "single-table", **options: Any) -> Design:
    patterns: list[Any] = [
        probes_between,
        last_probe,
        failures_since,
        slow_probes,
        routers_of,
        router,
        probe,
    ]
    volumes: dict[type[Entity], Any] = {Router: 1_000_000, Probe: per(Router, 240)}
    return Design("routers", [Router, Probe], patterns, volumes=volumes, layout=layout, **options)


def router_objects(chance: random.Random) -> list[Any]:
    found: list[Any] = [
        Router(
            router_id=each, isp=chance.choice(["a", "b"]), region=chance.choice(["US-WEST", "EU"])
        )
        for each in (-3, 0, 7, 10, 1234567)
    ]
    for each in (-3, 0, 7, 10, 1234567):
        found += [
            Probe(
                router_id=each,
                at=START + timedelta(hours=hour),
                kind=chance.choice(["latency", "throughput"]),
                ok=chance.random() < 0.7,
                latency_ms=round(chance.random() * 100, 3),
            )
            for hour in chance.sample(range(100), 30)
        ]
    return found


ROUTER_CALLS: list[tuple[str, dict[str, Any]]] = [
    *(
        (
            "probes_between",
            {"router_id": each, "start": START, "end": START + timedelta(hours=hours)},
        )
        for each in (-3, 7, 10)
        for hours in (50, 51, 52, 53)
    ),
    *(("last_probe", {"router_id": each}) for each in (-3, 0, 7)),
    ("failures_since", {"start": START + timedelta(hours=30)}),
    *(("slow_probes", {"router_id": each, "over": 40.5}) for each in (7, 10)),
    *(("routers_of", {"isp": isp, "region": "EU"}) for isp in "ab"),
    ("router", {"router_id": 10}),
]
