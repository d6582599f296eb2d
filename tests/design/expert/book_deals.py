"""Published: the Big Time Deals example of The DynamoDB Book."""

from datetime import date, datetime
from decimal import Decimal

from stator import (
    Design,
    Entity,
    Query,
    attr,
    counter,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    updates,
    write,
)

SOURCE = (
    "The DynamoDB Book, Big Time Deals chapter. From memory; confidence high on deals, messages, "
    "watches; middling on the rest. Deals are listed from three indexes whose partition ends "
    "in a day "
    "cut off from the time; unread messages have a sparse index; watchers of a brand share a "
    "partition, "
    "likes do not."
)


class Deal(Entity):
    deal_id: str = ident()  # a KSUID
    title: str
    link: str
    price: Decimal
    brand: str
    category: str
    day: date
    created_at: datetime


class Brand(Entity):
    brand: str = ident()
    logo_url: str
    likes: int = counter()
    watchers: int = counter()


class BrandLike(Entity):
    brand: str = ident()
    username: str = ident()


class BrandWatch(Entity):
    brand: str = ident()
    username: str = ident()


class CategoryPage(Entity):
    category: str = ident()
    featured: list[str]
    likes: int = counter()


class Shopper(Entity):
    username: str = ident()
    name: str
    joined_at: datetime


class Message(Entity):
    username: str = ident()
    message_id: str = ident()  # a KSUID
    subject: str
    deal_id: str
    unread_id: str | None = None  # equals message_id until it is read


@read(rps=300)
def deal(deal_id: str) -> Query[Deal]:
    return find(Deal).where(Deal.deal_id == deal_id)


@read(rps=100, returns=25)
def deals_of_day(day: date) -> Query[Deal]:
    return find(Deal).where(Deal.day == day).newest_first(Deal.created_at).limit(25)


@read(rps=50, returns=1)
def deals_of_brand(brand: str, day: date) -> Query[Deal]:
    return (
        find(Deal)
        .where(Deal.brand == brand, Deal.day == day)
        .newest_first(Deal.created_at)
        .limit(25)
    )


@read(rps=80, returns=25)
def deals_of_category(category: str, day: date) -> Query[Deal]:
    return (
        find(Deal)
        .where(Deal.category == category, Deal.day == day)
        .newest_first(Deal.created_at)
        .limit(25)
    )


@read(rps=60)
def brand(brand: str) -> Query[Brand]:
    return find(Brand).where(Brand.brand == brand)


@read(rps=90)
def category_page(category: str) -> Query[CategoryPage]:
    return find(CategoryPage).where(CategoryPage.category == category)


@read(rps=60)
def likes_brand(brand: str, username: str) -> Query[BrandLike]:
    return find(BrandLike).where(BrandLike.brand == brand, BrandLike.username == username)


@read(rps=2, returns=800)
def watchers_of_brand(brand: str) -> Query[BrandWatch]:
    return find(BrandWatch).where(BrandWatch.brand == brand)


@read(rps=80)
def shopper(username: str) -> Query[Shopper]:
    return find(Shopper).where(Shopper.username == username)


@read(rps=70, returns=20)
def messages_of(username: str) -> Query[Message]:
    return (
        find(Message).where(Message.username == username).newest_first(Message.message_id).limit(20)
    )


@read(rps=300, returns=3)
def unread_messages_of(username: str) -> Query[Message]:
    return (
        find(Message)
        .where(Message.username == username, attr(Message.unread_id).exists())
        .newest_first(Message.unread_id)
    )


@write(rps=2)
def publish_deal() -> object:
    return creates(Deal)


@write(rps=300)
def notify() -> object:
    return creates(Message)


@write(rps=200)
def mark_read() -> object:
    return updates(Message.unread_id)


@write(rps=10)
def like_brand() -> object:
    return creates(BrandLike), updates(Brand.likes)


@write(rps=5)
def watch_brand() -> object:
    return creates(BrandWatch), updates(Brand.watchers)


design = Design(
    "book_deals",
    [Deal, Brand, BrandLike, BrandWatch, CategoryPage, Shopper, Message],
    [
        deal,
        deals_of_day,
        deals_of_brand,
        deals_of_category,
        brand,
        category_page,
        likes_brand,
        watchers_of_brand,
        shopper,
        messages_of,
        unread_messages_of,
        publish_deal,
        notify,
        mark_read,
        like_brand,
        watch_brand,
    ],
    facts=[
        distinct(Deal.brand, values=2_000),
        distinct(Deal.category, values=12),
        distinct(Deal.day, values=900),
        share(attr(Message.unread_id).exists(), 0.05),
    ],
    volumes={
        Deal: 400_000,
        Brand: 2_000,
        BrandLike: per(Brand, 1_500),
        BrandWatch: per(Brand, 800),
        CategoryPage: 12,
        Shopper: 600_000,
        Message: per(Shopper, 60),
    },
    sizes={
        Deal: 450,
        Brand: 300,
        BrandLike: 120,
        BrandWatch: 120,
        CategoryPage: 900,
        Shopper: 300,
        Message: 260,
    },
)

EXPECTED = {
    "max_indexes": 3,
    "entities": {
        "Deal": {"partition": ["deal_id"], "sort": []},
        "Brand": {"partition": ["brand"], "sort": []},
        "BrandLike": {"partition": ["brand", "username"], "sort": []},
        "BrandWatch": {"partition": ["brand"], "sort": ["username"]},
        "CategoryPage": {"partition": ["category"], "sort": []},
        "Shopper": {"partition": ["username"], "sort": []},
        "Message": {"partition": ["username"], "sort": ["message_id"]},
    },
    "patterns": {
        "deal": {"by": "base"},
        "deals_of_day": {"by": "index", "partition": ["day"], "sort": ["created_at"]},
        "deals_of_brand": {
            "by": "index",
            "partition": ["brand", "day"],
            "sort": ["created_at"],
            "or": [{"by": "index", "partition": ["brand"], "sort": ["day", "created_at"]}],
        },
        "deals_of_category": {
            "by": "index",
            "partition": ["category", "day"],
            "sort": ["created_at"],
            "or": [{"by": "index", "partition": ["category"], "sort": ["day", "created_at"]}],
        },
        "brand": {"by": "base"},
        "category_page": {"by": "base"},
        "likes_brand": {"by": "base"},
        "watchers_of_brand": {"by": "base"},
        "shopper": {"by": "base"},
        "messages_of": {"by": "base"},
        "unread_messages_of": {
            "by": "index",
            "partition": ["username"],
            "sort": ["unread_id"],
            "sparse": True,
        },
    },
}
WHY = {
    "BrandLike": "Nobody lists the likes of a brand: two entities of the same shape get "
    "different keys, "
    "because only watchers are enumerated.",
    "deals_of_day": "A day as partition is the book's choice for a small, paged list; the "
    "front page is "
    "cached and copied, so 100 reads a second on one key are not a problem.",
}
