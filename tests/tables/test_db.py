"""``Db`` and ``AsyncDb`` as two faces of one definition."""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

import pytest

from stator.tables.db import AsyncDb, Db
from stator.tables.db_operations import DbOperations

OPERATIONS = [name for name in dir(DbOperations) if not name.startswith("_")]


@pytest.mark.parametrize("face", [Db, AsyncDb])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_a_method_with_the_signature_and_docstring_of_its_plan(
    face: type[Any], name: str
) -> None:
    method, plan = getattr(face, name), getattr(DbOperations, name)
    assert plan.__doc__
    assert method.__doc__ == plan.__doc__
    shown, planned = inspect.signature(method), inspect.signature(plan)
    assert shown.parameters == planned.parameters
    assert method.__qualname__ == f"{face.__name__}.{name}"
    assert "Work[" not in str(shown)
    assert "Pages[" not in str(shown)


def test_both_classes_have_the_same_public_methods() -> None:
    sync, awaited = (
        {name for name in vars(face) if not name.startswith("_")} for face in (Db, AsyncDb)
    )
    assert sync == awaited
    assert sync == {*OPERATIONS, "close", "dry_run", "run", "within"}


def test_help_shows_parameters_result_and_docstring() -> None:
    shown = pydoc.plain(pydoc.render_doc(Db.get))
    assert "entity: 'type[E]', /, *, consistent: 'bool' = False" in shown
    assert "**identity: 'Any') -> 'E | None'" in shown
    assert "Return the item with this identity" in shown
    shown = pydoc.plain(pydoc.render_doc(AsyncDb))
    assert "async get(self, entity: 'type[E]', /" in shown
    assert "fetch(self, query: 'Selection[" in shown
    assert "-> 'AsyncIterator[" in shown


def test_awaited_operations_are_coroutine_functions() -> None:
    opened = {"update", "transaction", "fetch", "scan", "explain", "within"}
    awaited = {name for name in OPERATIONS if inspect.iscoroutinefunction(getattr(AsyncDb, name))}
    assert awaited == set(OPERATIONS) - opened
