"""The register of operations: complete, and loaded on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stator.engine.operations import LOADED, OPERATIONS, load_operation
from stator.model.service import model_of


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_is_loaded_by_its_name(name: str) -> None:
    operation = load_operation(name)
    assert operation is not None
    assert operation.name == name
    assert LOADED[name] is operation
    assert name in model_of(name).operations


@pytest.mark.parametrize("name", ["", "getItem", "Operation", "CreateGlobalTable"])
def test_there_is_no_other_operation(name: str) -> None:
    assert load_operation(name) is None


def test_an_engine_loads_only_the_operations_it_is_asked_for() -> None:
    code = """
import sys
from stator.engine import Engine
with Engine.open() as engine:
    engine.call("ListTables", {})
print(*[name for name in sys.modules if "engine.operations." in name or "partiql" in name])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "stator.engine.operations.control",
        "stator.engine.operations.control.tables",
    ]
