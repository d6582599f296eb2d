"""A product catalogue: categories, products by rating, prices, reviews, stock."""

from datetime import datetime
from decimal import Decimal

from stator import (
    Bundle2,
    Design,
    Entity,
    Only,
    Query,
    attr,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    together,
    unique,
    updates,
    write,
)


class Category(Entity):
    category_id: str = ident()
    parent_id: str | None = None
    name: str


class Product(Entity):
    product_id: str = ident()
    sku: str = unique()
    category_id: str
    name: str
    description: str
    rating: float
    rating_count: int
    price: Decimal
    listed_at: datetime


class Price(Entity):
    product_id: str = ident()
    currency: str = ident()
    valid_from: datetime = ident()
    amount: Decimal


class Review(Entity):
    product_id: str = ident()
    user_id: str = ident()
    stars: int
    text: str
    at: datetime
    reported_at: datetime | None = None  # waits for a moderator: one in 500


class Stock(Entity):
    product_id: str = ident()
    warehouse: str = ident()
    quantity: int
    low_since: datetime | None = None  # set while the quantity is below the minimum: 2 %


@read(rps=100)
def category(category_id: str) -> Query[Category]:
    return find(Category).where(Category.category_id == category_id)


@read(rps=60, returns=12)
def subcategories(parent_id: str) -> Query[Category]:
    return find(Category).where(Category.parent_id == parent_id).order_by(Category.name)


@read(rps=1_500)
def product(product_id: str) -> Query[Product]:
    return find(Product).where(Product.product_id == product_id)


@read(rps=40)
def product_by_sku(sku: str) -> Query[Product]:
    return find(Product).where(Product.sku == sku)


@read(rps=300, returns=24)
def best_rated(category_id: str) -> Only[tuple[str, str, float, Decimal]]:
    return (
        find(Product)
        .where(Product.category_id == category_id)
        .order_by(Product.rating, descending=True)
        .limit(24)
        .only(Product.product_id, Product.name, Product.rating, Product.price)
    )


@read(rps=200, returns=24)
def cheapest(category_id: str) -> Only[tuple[str, str, float, Decimal]]:
    return (
        find(Product)
        .where(Product.category_id == category_id)
        .order_by(Product.price)
        .limit(24)
        .only(Product.product_id, Product.name, Product.rating, Product.price)
    )


@read(rps=100, returns=24)
def in_price_range(
    category_id: str, low: Decimal, high: Decimal
) -> Only[tuple[str, str, float, Decimal]]:
    return (
        find(Product)
        .where(Product.category_id == category_id, Product.price >= low, Product.price <= high)
        .order_by(Product.price)
        .limit(24)
        .only(Product.product_id, Product.name, Product.rating, Product.price)
    )


@read(rps=800, returns=4)
def product_page(product_id: str) -> Bundle2[Product, Stock]:
    return together(Product, Stock).where(Product.product_id == product_id)


@read(rps=900, returns=1)
def current_price(product_id: str, currency: str, now: datetime) -> Query[Price]:
    return (
        find(Price)
        .where(Price.product_id == product_id, Price.currency == currency, Price.valid_from <= now)
        .newest_first(Price.valid_from)
        .limit(1)
    )


@read(rps=2, returns=30)
def price_history(product_id: str, currency: str) -> Query[Price]:
    return (
        find(Price)
        .where(Price.product_id == product_id, Price.currency == currency)
        .newest_first(Price.valid_from)
    )


@read(rps=400, returns=10)
def newest_reviews(product_id: str) -> Query[Review]:
    return find(Review).where(Review.product_id == product_id).newest_first(Review.at).limit(10)


@read(rps=50, returns=10)
def newest_reviews_with_stars(product_id: str, stars: int) -> Query[Review]:
    return (
        find(Review)
        .where(Review.product_id == product_id, Review.stars == stars)
        .newest_first(Review.at)
        .limit(10)
    )


@read(rps=30)
def review_of_user(product_id: str, user_id: str) -> Query[Review]:
    return find(Review).where(Review.product_id == product_id, Review.user_id == user_id)


@read(rps=10, returns=10)
def reviews_by_user(user_id: str) -> Query[Review]:
    return find(Review).where(Review.user_id == user_id).newest_first(Review.at).limit(10)


@read(rps=600)
def stock_at(product_id: str, warehouse: str) -> Query[Stock]:
    return find(Stock).where(Stock.product_id == product_id, Stock.warehouse == warehouse)


@read(rps=1, returns=200)
def low_stock(warehouse: str) -> Query[Stock]:
    return (
        find(Stock)
        .where(Stock.warehouse == warehouse, attr(Stock.low_since).exists())
        .oldest_first(Stock.low_since)
    )


@write(rps=20)
def add_review() -> object:
    return creates(Review), updates(Product.rating, Product.rating_count)


@write(rps=5)
def change_price() -> object:
    return creates(Price), updates(Product.price)


@write(rps=150)
def sell() -> object:
    return updates(Stock.quantity)


@write(rps=3)
def cross_minimum() -> object:
    return updates(Stock.quantity, Stock.low_since)


@write(rps=1)
def list_product() -> object:
    return creates(Product), creates(Stock, times=3), creates(Price, times=4)


design = Design(
    "catalogue",
    [Category, Product, Price, Review, Stock],
    [
        category,
        subcategories,
        product,
        product_by_sku,
        best_rated,
        cheapest,
        in_price_range,
        product_page,
        current_price,
        price_history,
        newest_reviews,
        newest_reviews_with_stars,
        review_of_user,
        reviews_by_user,
        stock_at,
        low_stock,
        add_review,
        change_price,
        sell,
        cross_minimum,
        list_product,
    ],
    facts=[
        distinct(Product.category_id, values=2_000),
        distinct(Stock.warehouse, values=240),
        share(attr(Stock.low_since).exists(), 0.02),
        distinct(Review.user_id, values=2_000_000),
    ],
    volumes={
        Category: 2_000,
        Product: per(Category, 400),
        Price: per(Product, 60),
        Review: per(Product, 25),
        Stock: per(Product, 3),
    },
    sizes={Category: 200, Product: 6_000, Price: 130, Review: 900, Stock: 140},
)

EXPECTED = {
    "max_indexes": 3,
    "entities": {
        "Category": {"partition": ["category_id"], "sort": []},
        "Product": {"partition": ["product_id"], "sort": []},
        "Price": {"partition": ["product_id", "currency"], "sort": ["valid_from"]},
        "Review": {
            "partition": ["product_id", "user_id"],
            "sort": [],
            "or": [{"partition": ["product_id"], "sort": ["user_id"]}],
        },
        "Stock": {"partition": ["product_id"], "sort": ["warehouse"]},
    },
    "patterns": {
        "category": {"by": "base"},
        "subcategories": {
            "by": "index",
            "partition": ["parent_id"],
            "sort": ["name"],
            "sparse": True,
        },
        "product": {"by": "base"},
        "product_by_sku": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["sku"], "sort": []}],
        },
        "best_rated": {
            "by": "index",
            "partition": ["category_id"],
            "sort": ["rating"],
            "projection": "INCLUDE",
        },
        "cheapest": {
            "by": "index",
            "partition": ["category_id"],
            "sort": ["price"],
            "projection": "INCLUDE",
        },
        "in_price_range": {
            "by": "index",
            "partition": ["category_id"],
            "sort": ["price"],
            "projection": "INCLUDE",
            "shares_with": "cheapest",
        },
        "product_page": {"by": "base"},
        "current_price": {"by": "base"},
        "price_history": {"by": "base"},
        "newest_reviews": {"by": "index", "partition": ["product_id"], "sort": ["at"]},
        "newest_reviews_with_stars": {
            "by": "index",
            "partition": ["product_id", "stars"],
            "sort": ["at"],
            "or": [{"by": "filter", "partition": ["product_id"], "sort": ["at"]}],
        },
        "review_of_user": {"by": "base"},
        "reviews_by_user": {"by": "index", "partition": ["user_id"], "sort": ["at"]},
        "stock_at": {"by": "base"},
        "low_stock": {
            "by": "index",
            "partition": ["warehouse"],
            "sort": ["low_since"],
            "sparse": True,
        },
    },
    "no_index_has": ["description"],
}
WHY = {
    "best_rated": "24 products of 6 KB are 18 RCU a call; with four fields one or two. The "
    "rating is "
    "in the key and changes 20 times a second, which two extra units each do not make dear.",
    "cheapest": "A list of the range and a list from the start are the same index.",
    "newest_reviews_with_stars": "25 reviews a product fit in 3 RCU, so a filter on newest_reviews "
    "is as good as a third index on reviews; with thousands of reviews it would not be.",
    "low_stock": "quantity changes 150 times a second: an index with all fields of the stock "
    "would be "
    "written only for the 2 % that are low, so ALL is fine because it is sparse.",
    "Price": "The whole history of one currency in one partition: the current price is its "
    "newest item.",
}
