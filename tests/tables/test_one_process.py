"""A Db, its queries and its design belong to one process: pickling them says what to do instead."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from stator import connect, connect_async
from stator.errors import RequestRefused

from .shop import orders_of_user, shop


@pytest.mark.parametrize("turn", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("open_db", [connect, connect_async])
def test_a_db_is_not_copied(open_db: Callable[..., Any], turn: Callable[[Any], Any]) -> None:
    with pytest.raises(RequestRefused, match="holds an open connection") as refused:
        turn(open_db(shop()))
    assert f"{open_db.__name__}(...) in each process" in str(refused.value.hint)


@pytest.mark.parametrize("given", [orders_of_user, orders_of_user("u1"), shop()])
def test_patterns_queries_and_designs_are_copied_and_not_pickled(given: Any) -> None:
    with pytest.raises(RequestRefused, match="send it the arguments of the pattern"):
        pickle.dumps(given)
    for turn in (copy.copy, copy.deepcopy):
        assert repr(turn(given)) == repr(given)
    assert connect(shop()).all(copy.deepcopy(orders_of_user("u1"))) == []
