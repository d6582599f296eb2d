"""Published: AWS's serverless shopping cart sample."""

from datetime import datetime

from stator import (
    Design,
    Entity,
    Query,
    counter,
    creates,
    deletes,
    find,
    ident,
    per,
    read,
    ttl,
    updates,
    write,
)

SOURCE = (
    "aws-samples serverless shopping cart. From memory; confidence high. A cart's lines share the "
    "partition of the cart (anonymous) or of the user; the sort key is the product; totals of "
    "a product "
    "over all carts are counters in items of their own, kept by a stream."
)


class CartLine(Entity):
    cart: str = ident()  # "cart#..." before, "user#..." after signing in
    product_id: str = ident()
    quantity: int
    detail: str
    expires: datetime | None = ttl(days=7, default=None)


class ProductTotal(Entity):
    product_id: str = ident()
    quantity: int = counter()


class Product(Entity):
    product_id: str = ident()
    name: str
    price_cents: int
    text: str


@read(rps=400, returns=4)
def lines_of(cart: str) -> Query[CartLine]:
    return find(CartLine).where(CartLine.cart == cart)


@read(rps=50)
def line(cart: str, product_id: str) -> Query[CartLine]:
    return find(CartLine).where(CartLine.cart == cart, CartLine.product_id == product_id)


@read(rps=20)
def in_all_carts(product_id: str) -> Query[ProductTotal]:
    return find(ProductTotal).where(ProductTotal.product_id == product_id)


@read(rps=600)
def product(product_id: str) -> Query[Product]:
    return find(Product).where(Product.product_id == product_id)


@write(rps=80)
def put_in_cart() -> object:
    return creates(CartLine)


@write(rps=20)
def change_quantity() -> object:
    return updates(CartLine.quantity)


@write(rps=10)
def merge_carts() -> object:
    return creates(CartLine, times=3), deletes(CartLine, times=3)


@write(rps=110)
def count_totals() -> object:
    return updates(ProductTotal.quantity)


design = Design(
    "aws_cart",
    [CartLine, ProductTotal, Product],
    [
        lines_of,
        line,
        in_all_carts,
        product,
        put_in_cart,
        change_quantity,
        merge_carts,
        count_totals,
    ],
    volumes={CartLine: 10_000_000, ProductTotal: per(Product, 1), Product: 5_000},
    sizes={CartLine: 500, ProductTotal: 90, Product: 2_000},
)

EXPECTED = {
    "max_indexes": 0,
    "entities": {
        "CartLine": {"partition": ["cart"], "sort": ["product_id"]},
        "ProductTotal": {"partition": ["product_id"], "sort": []},
        "Product": {"partition": ["product_id"], "sort": []},
    },
    "patterns": {
        "lines_of": {"by": "base"},
        "line": {"by": "base"},
        "in_all_carts": {"by": "base"},
        "product": {"by": "base"},
    },
}
WHY = {"max_indexes": "No index at all: a planner that adds one has failed."}
