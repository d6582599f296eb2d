"""A catalogue: products with offers and reviews, by category, brand and price."""

from __future__ import annotations

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
    deletes,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    together,
    unique,
    updates,
    version,
    write,
)


class Product(Entity):
    sku: str = ident()
    ean: str = unique()
    title: str
    brand: str
    category: str
    price: Decimal
    rating: float
    description: str
    image_urls: list[str]
    is_listed: bool
    rev: int = version()


class Offer(Entity):
    sku: str = ident()
    seller_id: str = ident()
    price: Decimal
    stock: int


class Review(Entity):
    sku: str = ident()
    review_id: str = ident()
    stars: int
    text: str
    written_at: datetime


class Seller(Entity):
    seller_id: str = ident()
    name: str
    country: str


@read(rps=500)
def product_page(sku: str) -> Bundle2[Product, Offer]:
    return together(Product, Offer).where(Product.sku == sku)


@read(rps=100, returns=40)
def in_category(category: str, low: Decimal, high: Decimal) -> Only[tuple[str, str, Decimal]]:
    found = find(Product).where(
        Product.category == category, attr(Product.price).between(low, high)
    )
    return found.limit(40).only(Product.sku, Product.title, Product.price)


@read(rps=10)
def listed_of_brand(brand: str) -> Query[Product]:
    return find(Product).where(Product.brand == brand).filter(Product.is_listed == True)  # noqa: E712


@read(rps=30, returns=10)
def reviews_of(sku: str) -> Query[Review]:
    return find(Review).where(Review.sku == sku).newest_first(Review.written_at).limit(10)


@read(rps=5)
def bad_reviews(sku: str) -> Query[Review]:
    return find(Review).where(Review.sku == sku).filter(Review.stars <= 2)


@read(rps=10)
def offers_of_seller(seller_id: str) -> Query[Offer]:
    return find(Offer).where(Offer.seller_id == seller_id)


@read(rps=20)
def by_ean(ean: str) -> Query[Product]:
    return find(Product).where(Product.ean == ean)


@write(rps=50)
def reprice() -> object:
    return updates(Offer.price)


@write(rps=5)
def list_product() -> object:
    return creates(Product), creates(Offer, times=3)


@write(rps=5)
def edit() -> object:
    return updates(Product.title, Product.price)


@write(rps=1)
def withdraw() -> object:
    return deletes(Product)


@write(rps=20)
def review() -> object:
    return creates(Review), updates(Product.rating)


catalogue = Design(
    "catalogue",
    [Product, Offer, Review, Seller],
    [
        product_page, in_category, listed_of_brand, reviews_of, bad_reviews, offers_of_seller,
        by_ean, reprice, list_product, edit, withdraw, review,
    ],
    volumes={
        Product: 2_000_000, Offer: per(Product, 4), Review: per(Product, 30), Seller: 10_000,
    },
    sizes={Product: 6_000, Review: 700},
    facts=[
        distinct(Product.category, values=2_000),
        distinct(Product.brand, values=20_000),
        share(Product.is_listed == True, 0.8),  # noqa: E712
        share(Review.stars <= 2, 0.1),
    ],
)  # fmt: skip
