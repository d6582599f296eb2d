"""What ``from stator import ...`` offers: the same at run time and to type checkers, and nothing heavy before it is used."""

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
    assert declared() == set(stator._HOME_OF)
    for name in declared():
        assert getattr(stator, name).__module__.startswith("stator.")
        assert name in dir(stator)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        stator.nothing  # noqa: B018


def test_importing_stator_imports_nothing_else() -> None:
    code = "import sys, stator; print(sorted(name for name in sys.modules if name.startswith('stator')))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "['stator']"
