"""Tokens: a transaction sent twice is applied once."""

from __future__ import annotations

import time

import pytest

from stator.errors import (
    IdempotentParameterMismatch,
)
from tests.targets import Target

from .bank import (
    DESIGN,
    Account,
    Note,
)


def test_a_token_does_it_once_whatever_is_stamped(target: Target) -> None:
    db = target.connect(DESIGN)
    for _ in range(3):
        with db.transaction(token="note-1") as tx:
            tx.create(Note(note_id="n1", topic="t"))
            with tx.update(Account, number="a", or_create=True) as a:
                a.balance += 1
        time.sleep(0.002)
    found = db.get(Account, number="a", consistent=True)
    assert found is not None and found.balance == 1
    with pytest.raises(IdempotentParameterMismatch), db.transaction(token="note-1") as tx:
        tx.create(Note(note_id="n2", topic="t"))
