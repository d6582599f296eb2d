"""The house keeps its own rules: tests are found from the source, and a name means one thing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "stator"
TESTS = ROOT / "tests"
STARTERS = SOURCES / "cli" / "starters"
# Nouns that happen to end like activities.
NOUNS = {"finding", "housekeeping", "parking", "pricing", "target_tracking", "wording"}
LISTED = re.compile(r"^\s*(?P<module>[\w.]+): (?P<file>[\w./]+\.py)\b", re.MULTILINE)


def modules() -> Iterator[Path]:
    """Every module of the package, relative to it; packages and starter projects left out."""
    for path in sorted(SOURCES.rglob("*.py")):
        if not path.name.startswith("__") and not path.is_relative_to(STARTERS):
            yield path.relative_to(SOURCES)


def packages() -> Iterator[Path]:
    for path in sorted(SOURCES.rglob("__init__.py")):
        if not path.is_relative_to(STARTERS):
            yield path


def listed_tests() -> dict[str, Path]:
    """Modules whose tests stand in a file of another name, as the tests' packages list them.

    A line of a test package's docstring, ``items.keyspace: test_items.py`` in ``tests/engine``,
    says that ``stator.engine.items.keyspace`` is tested there.
    """
    found = {}
    for path in sorted(TESTS.rglob("__init__.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        package = ".".join(path.parent.relative_to(TESTS).parts)
        for line in LISTED.finditer(docstring):
            name = f"{package}.{line['module']}" if package else line["module"]
            found[name] = (path.parent / line["file"]).resolve()
    return found


def public_classes() -> dict[str, list[str]]:
    places = defaultdict(list)
    for module in modules():
        for node in ast.parse((SOURCES / module).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(module))
    return places


def test_the_tests_of_every_module_are_found_from_its_path() -> None:
    listed = listed_tests()
    lost = []
    for module in modules():
        mirrored = TESTS / module.parent / f"test_{module.name}"
        name = ".".join(module.with_suffix("").parts)
        if not mirrored.exists() and name not in listed:
            lost.append(name)
    assert lost == []


def test_listed_tests_and_modules_exist() -> None:
    names = {".".join(module.with_suffix("").parts) for module in modules()}
    listed = listed_tests()
    assert {name for name in listed if name not in names} == set()
    assert {path for path in listed.values() if not path.exists()} == set()


def test_a_public_class_name_means_one_thing() -> None:
    assert {name: places for name, places in public_classes().items() if len(places) > 1} == {}


def test_a_module_is_named_for_a_thing_and_not_for_an_activity() -> None:
    activities = [
        str(module)
        for module in modules()
        if module.stem.endswith("ing") and module.stem not in NOUNS
    ]
    assert activities == []


def test_every_package_says_what_lives_in_it() -> None:
    silent = []
    for path in packages():
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        if len(docstring.split()) < 12:
            silent.append(str(path.relative_to(SOURCES)))
    assert silent == []


def test_a_folder_holds_at_most_twenty_modules() -> None:
    counts: dict[Path, int] = defaultdict(int)
    for module in modules():
        counts[module.parent] += 1
    assert {str(folder): count for folder, count in counts.items() if count > 20} == {}
