"""The public packages: the same names at run time and for type checkers, loaded on use."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import stator

PACKAGES = [
    "stator", "stator.bulk", "stator.costs", "stator.data", "stator.patterns", "stator.pipeline",
    "stator.plans", "stator.telemetry", "stator.testing",
]  # fmt: skip


def imported(package: str) -> dict[str, str]:
    """The names that type checkers see, and the module of each."""
    path = importlib.import_module(package).__file__
    assert path is not None
    block = next(
        node for node in ast.parse(Path(path).read_text()).body if isinstance(node, ast.If)
    )
    return {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_and_programs_see_the_same_names(package: str) -> None:
    found = importlib.import_module(package)
    assert imported(package) == found._HOME_OF
    assert sorted(imported(package)) == found.__all__
    for name in found.__all__:
        assert found._HOME_OF[name].startswith("stator.")
        assert getattr(found, name) is not None
        assert name in dir(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_star_import_brings_every_public_name(package: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)
    found = importlib.import_module(package)
    assert set(names) - {"__builtins__"} == set(found.__all__)
    assert all(names[name] is getattr(found, name) for name in found.__all__)


def test_the_front_shadows_nothing_of_the_standard_library() -> None:
    """A program that imports everything keeps what it knows from typing, collections and so on."""
    modules = ("builtins", "collections", "collections.abc", "threading", "asyncio", "queue")
    known = {name for module in modules for name in dir(importlib.import_module(module))}
    assert not known & set(stator.__all__)


def test_a_name_is_public_in_one_package() -> None:
    names = [name for package in PACKAGES for name in importlib.import_module(package).__all__]
    assert len(names) == len(set(names))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'stator' has no attribute 'nothing'"):
        stator.nothing  # noqa: B018


def test_a_name_of_another_package_is_an_error_that_names_it() -> None:
    code = "from stator import Tree"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: Tree is in stator.patterns: from stator.patterns import Tree" in ran.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_public_package_imports_nothing_else(package: str) -> None:
    code = f"import sys, {package}; print(*[m for m in sys.modules if m.startswith('stator')])"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert set(printed.split()) == {"stator", "stator.lazy_names", package}
