"""A folder with a design file in it, and the command run there as a process."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests import warm_python

from .serving import ENVIRONMENT, TIMEOUT_SECONDS

SHOP = """\
from datetime import datetime

from stator import Bundle2, Query, creates, find, read, together, write
from stator.design.design import Design, per
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident, unique


class User(Entity):
    user_id: str = ident()
    email: str = unique()


class Order(Entity):
    order_id: str = ident()
    user_id: str
    placed_at: datetime


@read(rps=100)
def user_by_email(email: str) -> Query[User]:
    return find(User).where(User.email == email)


@read(rps=120, returns=12)
def orders_of_user(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at)


@read(rps=40, returns=13)
def user_page(user_id: str) -> Bundle2[User, Order]:
    return together(User, Order).where(User.user_id == user_id)


@write(rps=30)
def place_order() -> object:
    return creates(Order)


shop = Design(
    "shop",
    [User, Order],
    [user_by_email, orders_of_user, user_page, place_order],
    volumes={User: 2_000_000, Order: per(User, 12)},
)
"""


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new))

    def line_of(self, name: str, words: str) -> int:
        """The number of the first line that has the words."""
        lines = (self.folder / name).read_text().splitlines()
        return next(number for number, line in enumerate(lines, 1) if words in line)

    def run(self, *arguments: str, columns: int | None = None) -> subprocess.CompletedProcess[str]:
        return warm_python.run(
            "-m",
            "stator",
            *arguments,
            cwd=self.folder,
            env=ENVIRONMENT if columns is None else {**ENVIRONMENT, "COLUMNS": str(columns)},
            timeout=TIMEOUT_SECONDS,
        )
