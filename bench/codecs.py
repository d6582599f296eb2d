"""Compare encoders of entities: Stator's generated codec and boto3's serializer with pydantic.

    python -m bench.codecs

Both do the same work on the same item of about 1 KB: from an object in memory to a request body,
and from a response body to a validated object. The boto3 way is ``model_dump`` and TypeSerializer,
then TypeDeserializer and ``model_validate``. Because these know neither times nor UUIDs, the model
turns them into text, as programs that go this way do. Rounds alternate and the best of each counts,
so that a slow minute of a shared machine hits both.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import orjson
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from pydantic import BaseModel, PlainSerializer
from rich.console import Console
from rich.table import Table

from bench import machine
from stator.design.entities.adapters import adapt
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import ident

console = Console()


class Status(Enum):
    PENDING = "pending"
    SHIPPED = "shipped"


# --- the entity in Stator ---------------------------------------------------------------------


@dataclass
class Address:
    street: str
    city: str
    postcode: str
    country: str
    floor: int | None = None


@dataclass
class Line:
    sku: str
    name: str
    quantity: int
    price: Decimal


class Order(Entity):
    order_id: UUID = ident()
    customer: str
    placed_at: datetime
    status: Status = Status.PENDING
    total: Decimal
    address: Address
    lines: list[Line] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    note: str | None = None
    coupon: str | None = None
    paid: bool = False
    weight_grams: int = 0
    expires: datetime | None = None


# --- the same in pydantic ---------------------------------------------------------------------

Time = Annotated[
    datetime,
    PlainSerializer(lambda moment: moment.isoformat(timespec="microseconds"), return_type=str),
]
Identifier = Annotated[UUID, PlainSerializer(str, return_type=str)]
Choice = Annotated[Status, PlainSerializer(lambda status: status.value, return_type=str)]


class AddressModel(BaseModel):
    street: str
    city: str
    postcode: str
    country: str
    floor: int | None = None


class LineModel(BaseModel):
    sku: str
    name: str
    quantity: int
    price: Decimal


class OrderModel(BaseModel):
    order_id: Identifier
    customer: str
    placed_at: Time
    status: Choice = Status.PENDING
    total: Decimal
    address: AddressModel
    lines: list[LineModel] = []
    tags: set[str] = set()
    note: str | None = None
    coupon: str | None = None
    paid: bool = False
    weight_grams: int = 0
    expires: Time | None = None


Adapted = adapt(OrderModel, ident="order_id")


def example() -> Order:
    placed = datetime(2026, 11, 15, 9, 30, 12, 345678, tzinfo=UTC)
    names = (
        "Walnut desk organiser",
        "Brass reading lamp",
        "Linen notebook, ruled",
        "Fountain pen, fine nib",
    )
    return Order(
        order_id=UUID("6f2c1f0e-8f0a-4c51-9d0f-0f6f3f1f2a11"),
        customer="customer-000182736",
        placed_at=placed,
        status=Status.SHIPPED,
        total=Decimal("248.35"),
        address=Address("12 Harbour Street, flat 4", "Rotterdam", "3011 AA", "NL", 2),
        lines=[
            Line(f"SKU-{4400 + at}", name, at + 1, Decimal("19.95") * (at + 1))
            for at, name in enumerate(names)
        ],
        tags={"gift", "priority", "newsletter"},
        note="Leave with the neighbour if nobody answers the bell.",
        paid=True,
        weight_grams=2150,
        expires=placed + timedelta(days=90),
    )


# --- measurements -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Way:
    name: str
    encode: Callable[[], Any]
    decode: Callable[[], Any]


def ways() -> list[Way]:
    """Every way, after a check that each decodes what it has encoded."""
    order = example()
    model = OrderModel.model_validate(dataclasses.asdict(order))
    ours, adapted = info(Order).codec, info(Adapted).codec
    serializer, deserializer = TypeSerializer(), TypeDeserializer()

    def boto_encode() -> dict[str, Any]:
        dumped = model.model_dump(exclude_none=True)
        return {name: serializer.serialize(value) for name, value in dumped.items()}

    stored, theirs, wire = ours.encode(order), boto_encode(), adapted.encode(model)

    def boto_decode() -> OrderModel:
        return OrderModel.model_validate(
            {name: deserializer.deserialize(value) for name, value in theirs.items()}
        )

    assert ours.decode(stored) == order
    assert boto_decode() == model == adapted.decode(wire)
    return [
        Way("stator", lambda: ours.encode(order), lambda: ours.decode(stored)),
        Way("boto3 + pydantic", boto_encode, boto_decode),
        Way(
            "stator, pydantic adapted", lambda: adapted.encode(model), lambda: adapted.decode(wire)
        ),
    ]


def best_of(rounds: int, calls: int, functions: list[Callable[[], Any]]) -> list[float]:
    """Microseconds per call of each function; they take turns, without the garbage collector."""
    best = [float("inf")] * len(functions)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for at, function in enumerate(functions):
                started = time.perf_counter()
                for _ in range(calls):
                    function()
                best[at] = min(best[at], (time.perf_counter() - started) / calls * 1e6)
    finally:
        gc.enable()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.codecs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--rounds", type=int, default=40, help="alternating rounds; best counts (default: 40)"
    )
    parser.add_argument("--calls", type=int, default=1_000, help="calls per round (default: 1,000)")
    options = parser.parse_args()
    measured = ways()
    size = len(orjson.dumps(info(Order).codec.encode(example())))
    console.print(f"{machine.describe()}; an item of {size:,} bytes of DynamoDB JSON")
    encode = best_of(options.rounds, options.calls, [way.encode for way in measured])
    decode = best_of(options.rounds, options.calls, [way.decode for way in measured])
    console.print(show(measured, encode, decode))


def show(measured: list[Way], encode: list[float], decode: list[float]) -> Table:
    table = Table(
        title="microseconds per item, best round; ratio of the time to that of Stator's codec"
    )
    for column in ("way", "encode us", "ratio", "decode us", "ratio", "both us", "ratio"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for at, way in enumerate(measured):
        cells = [way.name]
        for times in (encode, decode, [first + second for first, second in zip(encode, decode)]):
            cells += [f"{times[at]:.2f}", f"{times[at] / times[0]:.2f}x"]
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    main()
