"""A product catalogue: variants, prices, stock, reviews. The second expert's."""

# ruff: noqa: E712 - a comparison makes a condition

from datetime import datetime
from decimal import Decimal
from typing import Literal

from stator import (
    Bundle4,
    Design,
    Entity,
    Only,
    Query,
    attr,
    counter,
    creates,
    distinct,
    find,
    ident,
    largest,
    per,
    read,
    share,
    together,
    unique,
    updates,
    write,
)


class Product(Entity):
    product_id: str = ident()
    slug: str = unique()
    name: str
    brand: str
    category: str
    thumb: str
    description: str
    rank: int
    price: Decimal
    active: bool = True


class Rating(Entity):
    product_id: str = ident()
    reviews: int = counter()
    stars: int = counter()


class Variant(Entity):
    product_id: str = ident()
    sku: str = ident()
    name: str
    attributes: dict[str, str]


class Price(Entity):
    product_id: str = ident()
    sku: str = ident()
    currency: str = ident()
    amount: Decimal
    valid_from: datetime


class PriceChange(Entity):
    sku: str = ident()
    currency: str = ident()
    at: datetime = ident()
    amount: Decimal
    by: str


class Stock(Entity):
    sku: str = ident()
    warehouse: str = ident()
    quantity: int
    low: bool = False
    changed_at: datetime


class Review(Entity):
    product_id: str = ident()
    review_id: str = ident()
    user_id: str
    at: datetime
    stars: int
    title: str
    text: str
    state: Literal["pending", "published", "rejected"] = "pending"


@read(rps=3000)
def product_page(product_id: str) -> Bundle4[Product, Rating, Variant, Price]:
    return together(Product, Rating, Variant, Price).where(Product.product_id == product_id)


@read(rps=700)
def product_by_slug(slug: str) -> Query[Product]:
    return find(Product).where(Product.slug == slug)


@read(rps=800, returns=24)
def in_category(category: str) -> Only[tuple[str, str, str, Decimal]]:
    shown = find(Product).where(Product.category == category, Product.active == True)
    return (
        shown.order_by(Product.rank)
        .limit(24)
        .only(Product.product_id, Product.name, Product.thumb, Product.price)
    )


@read(rps=200, returns=24)
def in_category_by_price(
    category: str, low: Decimal, high: Decimal
) -> Only[tuple[str, str, str, Decimal]]:
    shown = find(Product).where(
        Product.category == category, Product.active == True, attr(Product.price).between(low, high)
    )
    return (
        shown.order_by(Product.price)
        .limit(24)
        .only(Product.product_id, Product.name, Product.thumb, Product.price)
    )


@read(rps=60, returns=24)
def of_brand(brand: str) -> Only[tuple[str, str, str]]:
    return (
        find(Product)
        .where(Product.brand == brand, Product.active == True)
        .order_by(Product.name)
        .limit(24)
        .only(Product.product_id, Product.name, Product.thumb)
    )


@read(rps=1500)
def stock_of(sku: str) -> Query[Stock]:
    return find(Stock).where(Stock.sku == sku)


@read(rps=500)
def stock_at(sku: str, warehouse: str) -> Query[Stock]:
    return find(Stock).where(Stock.sku == sku, Stock.warehouse == warehouse)


@read(rps=0.5, returns=200)
def low_stock(warehouse: str) -> Query[Stock]:
    return find(Stock).where(Stock.warehouse == warehouse, Stock.low == True)


@read(rps=600, returns=10)
def newest_reviews(product_id: str) -> Query[Review]:
    return (
        find(Review)
        .where(Review.product_id == product_id, Review.state == "published")
        .newest_first(Review.at)
        .limit(10)
    )


@read(rps=60, returns=8)
def reviews_with_stars(product_id: str, stars: int) -> Query[Review]:
    return (
        find(Review)
        .where(Review.product_id == product_id, Review.state == "published", Review.stars == stars)
        .newest_first(Review.at)
        .limit(10)
    )


@read(rps=20, returns=6)
def reviews_by(user_id: str) -> Query[Review]:
    return find(Review).where(Review.user_id == user_id).newest_first(Review.at).limit(20)


@read(rps=1, returns=50)
def to_moderate() -> Query[Review]:
    return find(Review).where(Review.state == "pending").oldest_first(Review.at).limit(50)


@read(rps=3, returns=20)
def price_history(sku: str, currency: str, since: datetime) -> Query[PriceChange]:
    return find(PriceChange).where(
        PriceChange.sku == sku, PriceChange.currency == currency, PriceChange.at >= since
    )


@write(rps=900)
def sell() -> object:
    return updates(Stock.quantity, Stock.changed_at)


@write(rps=10)
def runs_low() -> object:
    return updates(Stock.low, before=Stock.low == False, after=Stock.low == True)


@write(rps=10)
def restock() -> object:
    return updates(Stock.low, Stock.quantity, before=Stock.low == True, after=Stock.low == False)


@write(rps=50)
def reprice() -> object:
    return updates(Price.amount, Price.valid_from), creates(PriceChange), updates(Product.price)


@write(rps=30)
def rerank() -> object:
    return updates(Product.rank)


@write(rps=15)
def submit_review() -> object:
    return creates(Review)


@write(rps=14)
def publish() -> object:
    return (
        updates(Review.state, before=Review.state == "pending", after=Review.state == "published"),
        updates(Rating.reviews, Rating.stars),
    )


@write(rps=1)
def add_product() -> object:
    return creates(Product), creates(Rating), creates(Variant, times=5), creates(Price, times=10)


design = Design(
    "catalogue",
    [Product, Rating, Variant, Price, PriceChange, Stock, Review],
    [
        product_page,
        product_by_slug,
        in_category,
        in_category_by_price,
        of_brand,
        stock_of,
        stock_at,
        low_stock,
        newest_reviews,
        reviews_with_stars,
        reviews_by,
        to_moderate,
        price_history,
        sell,
        runs_low,
        restock,
        reprice,
        rerank,
        submit_review,
        publish,
        add_product,
    ],
    volumes={
        Product: 3_000_000,
        Rating: per(Product, 1),
        Variant: per(Product, 5),
        Price: per(Variant, 2),
        PriceChange: per(Price, 20),
        Stock: per(Variant, 6),
        Review: per(Product, 40),
    },
    sizes={
        Product: 3_500,
        Rating: 80,
        Variant: 350,
        Price: 150,
        PriceChange: 130,
        Stock: 130,
        Review: 800,
    },
    facts=[
        distinct(Product.category, values=3_000),
        distinct(Product.brand, values=60_000),
        share(Product.active == True, 0.7),
        share(Stock.low == True, 0.00003),
        distinct(Stock.warehouse, values=12),
        distinct(Stock.sku, values=15_000_000),
        share(Review.state == "pending", 0.002),
        share(Review.state == "published", 0.95),
        distinct(Review.user_id, values=20_000_000),
        distinct(Review.stars, values=5),
        distinct(PriceChange.sku, PriceChange.currency, values=30_000_000),
        largest(Product.category, 0.02),
        largest(Review.product_id, 0.0005),
    ],
)

EXPECTED = {
    "entities": {
        "Product": {"partition": ["product_id"], "sort": []},
        "Rating": {"partition": ["product_id"], "sort": []},
        "Variant": {"partition": ["product_id"], "sort": ["sku"]},
        "Price": {
            "partition": ["product_id"],
            "sort": ["currency", "sku"],
            "or": [{"partition": ["product_id"], "sort": ["sku", "currency"]}],
        },
        "PriceChange": {"partition": ["sku", "currency"], "sort": ["at"]},
        "Stock": {"partition": ["sku"], "sort": ["warehouse"]},
        "Review": {"partition": ["product_id"], "sort": ["review_id"]},
    },
    "patterns": {
        "product_page": {"by": "base"},
        "product_by_slug": {"by": "guard"},
        "in_category": {
            "by": "index",
            "partition": ["active", "category"],
            "sort": ["rank"],
            "projection": "INCLUDE",
        },
        "in_category_by_price": {
            "by": "index",
            "partition": ["active", "category"],
            "sort": ["price"],
            "projection": "INCLUDE",
        },
        "of_brand": {
            "by": "index",
            "partition": ["active", "brand"],
            "sort": ["name"],
            "projection": "INCLUDE",
        },
        "stock_of": {"by": "base"},
        "stock_at": {"by": "base"},
        "low_stock": {"by": "index", "partition": ["low", "warehouse"], "sort": []},
        "newest_reviews": {"by": "index", "partition": ["state", "product_id"], "sort": ["at"]},
        "reviews_with_stars": {
            "by": "index",
            "partition": ["state", "product_id", "stars"],
            "sort": ["at"],
        },
        "reviews_by": {
            "by": "index",
            "partition": ["user_id"],
            "sort": ["at"],
            "projection": "INCLUDE",
        },
        "to_moderate": {"by": "index", "partition": ["state"], "sort": ["at"]},
        "price_history": {"by": "base"},
    },
}
WHY = {
    "Rating": ("A small item of its own, so that a review does not rewrite 4 KB. "),
    "Review": ("Not in the partition of the product, whose page would read it. "),
}
