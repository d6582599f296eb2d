"""``from stator import ...``: the same names at run time and for type checkers, loaded on use."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import stator


def declared() -> set[str]:
    tree = ast.parse(Path(stator.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_and_programs_see_the_same_names() -> None:
    assert declared() == set(stator.__all__)
    for name in declared():
        assert getattr(stator, name).__module__.startswith("stator.")
        assert name in dir(stator)


def test_the_table_of_homes_says_where_type_checkers_find_each_name() -> None:
    tree = ast.parse(Path(stator.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == stator._HOME_OF


def test_a_star_import_brings_every_public_name() -> None:
    names: dict[str, object] = {}
    exec("from stator import *", names)
    assert set(names) - {"__builtins__"} == set(stator.__all__)
    assert names["connect"] is stator.connect


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        stator.nothing  # noqa: B018


def test_importing_stator_imports_nothing_else() -> None:
    code = "import sys, stator; print(sorted(m for m in sys.modules if m.startswith('stator')))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "['stator']"
