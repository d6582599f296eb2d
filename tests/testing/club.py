"""A small design for the tests of the testing kit."""

from __future__ import annotations

from stator import Design, Entity, counter, ident
from stator.design.plan.plan import Plan


class Account(Entity):
    account_id: str = ident()
    balance: int = counter(default=0)
    note: str = ""


bank = Design("bank", [Account])
PLAN: Plan = bank.plan()
"""Planned once: a connection that receives a plan opens in a millisecond."""
