"""A folder with a design in it, and ``stator`` run there as a process."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests import warm_python

from .serving import ENVIRONMENT, TIMEOUT_SECONDS

DESIGN = '''
from datetime import datetime
from decimal import Decimal

from stator import Design, Entity, Query, creates, find, ident, per, read, ttl, write


class User(Entity):
    """Somebody who buys."""

    user_id: str = ident()
    email: str


class Order(Entity):
    order_id: str = ident()
    user_id: str
    placed_at: datetime
    total: Decimal
    expires: datetime | None = ttl(days=90, default=None)


@read(rps=200)
def user_by_id(user_id: str) -> Query[User]:
    """Who is logged in."""
    return find(User).where(User.user_id == user_id)


@read(rps=120, returns=25)
def orders_of_user(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at)


@write(rps=30)
def place_order() -> object:
    return creates(Order)


shop = Design(
    "shop",
    [User, Order],
    [user_by_id, orders_of_user, place_order],
    volumes={User: 2_000_000, Order: per(User, 12)},
)
'''
BY_EMAIL = """

@read(rps=20)
def user_by_email(email: str) -> Query[User]:
    return find(User).where(User.email == email)
"""


def with_email(text: str = DESIGN) -> str:
    """The design with one pattern more, which takes an index."""
    head, tail = text.split("\n\n@write", 1)
    return (
        head
        + BY_EMAIL
        + "\n\n@write"
        + tail.replace("orders_of_user, place", "orders_of_user, user_by_email, place")
    )


def stator_in(
    folder: Path, *arguments: str, columns: int | None = None
) -> subprocess.CompletedProcess[str]:
    return warm_python.run(
        "-m",
        "stator",
        *arguments,
        cwd=folder,
        env=ENVIRONMENT if columns is None else {**ENVIRONMENT, "COLUMNS": str(columns)},
        timeout=TIMEOUT_SECONDS,
    )


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)
