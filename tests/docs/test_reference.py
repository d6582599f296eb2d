"""The reference is complete: every public name, method, command and option has a text."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from docsite import api_pages, command_pages, public_api, reachable
from docsite.docstrings import to_markdown


def test_every_public_name_and_method_has_a_docstring() -> None:
    assert list(public_api.undocumented()) == []


def test_every_command_and_option_has_a_help_text_and_every_command_an_example() -> None:
    assert list(command_pages.undocumented()) == []


def test_a_text_that_only_repeats_the_name_says_nothing() -> None:
    assert not public_api.says_something("ItemExists", "Item exists.")
    assert not public_api.says_something("of_index", "")
    assert public_api.says_something("close", "Close connections when a worker ends.")


@pytest.mark.parametrize("name", public_api.PUBLIC_MODULES)
def test_the_pages_of_a_module_have_every_name(name: str) -> None:
    module = next(each for each in public_api.public_modules() if each.name == name)
    text = "\n".join(
        page
        for address, page in api_pages.pages().items()
        if address.startswith(f"reference/python/{module.name}/")
    )
    assert [each.name for each in module.names] == sorted(
        import_module(module.name).__all__, key=str.lower
    )
    for each in module.names:
        assert f"{{#{each.path}}}" in text
        for member in each.members:
            assert f"{{#{each.path}.{member.name}}}" in text


def test_the_stability_page_lists_every_public_module() -> None:
    text = (Path(__file__).parents[2] / "docs" / "stability.md").read_text()
    [row] = [line for line in text.splitlines() if "`__all__`" in line]
    assert re.findall(r"`(stator[\w.]*)`", row) == list(public_api.PUBLIC_MODULES)


def test_signatures_are_those_that_callers_use() -> None:
    modules = {module.name: module for module in public_api.public_modules()}
    names = {each.name: each for each in modules["stator"].names}
    patterns = {each.name: each for each in modules["stator.patterns"].names}
    db = {member.name: member for member in names["Db"].members}
    counter = {member.name: member for member in patterns["Counter"].members}
    awaited = {member.name: member for member in names["AsyncDb"].members}
    assert db["fetch"].signatures[0].startswith("fetch(query: ")
    assert db["fetch"].signatures[0].endswith("-> Iterator[F]")
    assert awaited["count"].kind == "async method"
    assert counter["add"].signatures == ("add(amount: int = 1) -> None",)
    assert "connect_timeout_seconds" in names["connect"].doc
    assert 'on_error: OnError = "raise"' in db["write_many"].signatures[0]
    assert 'returns: Literal["old"] | None = None' in db["put"].signatures[0]


def test_every_class_in_a_public_signature_has_a_page_or_is_only_passed_on() -> None:
    assert reachable.without_page() == {}
    assert reachable.not_passed_on() == []
    page = api_pages.pages()[reachable.PAGE]
    for path in reachable.PASSED_ON:
        assert f"| `{path.rpartition('.')[2]}`<br>`{path.rpartition('.')[0]}` |" in page
    empty = [path for path in reachable.PASSED_ON if not reachable.explained(path)]
    assert not empty, "their docstrings say nothing"


def test_a_class_that_programs_only_receive_shows_no_constructor_and_no_internals() -> None:
    bulk = next(each for each in public_api.public_modules() if each.name == "stator.bulk")
    names = {each.name: each for each in bulk.names}
    assert not names["BulkTarget"].signatures
    shown = {member.name for member in (*names["LoadPlan"].members, *names["LoadPlan"].fields)}
    assert "run" in shown and not shown & {"encoder", "entries", "entries_from", "journal"}
    for path in public_api.RECEIVED | public_api.INTERNAL:
        assert public_api.exists(path), f"{path} is gone"


def test_docstrings_become_markdown() -> None:
    doc = (
        "Open ``Db`` <now>.\n\n"
        "    db = connect(shop)\n\n"
        "region           by default the\n                 address's\n"
        "max_attempts     a limit\n"
    )
    addresses = {"Db": "Db.md"}
    assert to_markdown(doc, addresses.get) == (
        "Open [`Db`](Db.md) &lt;now>.\n\n"
        "```python\ndb = connect(shop)\n```\n\n"
        "- `region`: by default the address's\n"
        "- `max_attempts`: a limit"
    )


def test_a_command_page_shows_its_options_and_examples() -> None:
    page = command_pages.pages()["reference/commands/load.md"]
    assert "| `--shuffle ROWS` | Rows held in memory and written in random order. |" in page
    assert "$ stator load 'orders/*.parquet' --to http://localhost:8000 --table orders" in page
    assert "## Exit codes" in page
    assert (
        "| `FILES...` | Files, folders, quoted globs, s3://bucket/prefix, or - for stdin. |\n"
        in page
    )
    check = command_pages.pages()["reference/commands/check.md"]
    assert "By default, &lt;name>.design.json next to the design. |" in check
