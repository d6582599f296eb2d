"""Options of ``connect`` and ``connect_async``."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from typing import Any

import pytest

from stator import connect, connect_async
from stator.addresses import Address, TransportOptions
from stator.errors import ConfigurationError
from stator.tables.connection import ConnectOptions
from tests.tables.shop import shop

OPTIONS = {*ConnectOptions.__annotations__, *TransportOptions.__annotations__}


@pytest.mark.parametrize("function", [connect, connect_async])
def test_help_lists_every_option_with_its_type_and_a_line_of_documentation(
    function: Callable[..., Any],
) -> None:
    parameters = inspect.signature(function).parameters
    assert set(parameters) == {"design", "address", *OPTIONS}
    assert parameters["threads"].annotation == "int"
    assert parameters["threads"].default == 16
    shown = pydoc.plain(pydoc.render_doc(function))
    signature, _, text = shown.partition("Options of the tables")
    for name in OPTIONS:
        assert f"{name}: " in signature
        assert f" {name}" in text


@pytest.mark.parametrize("function", [connect, connect_async])
def test_an_unknown_option_is_refused_with_the_list_of_options(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(ConfigurationError, match="has no option 'treads'") as refused:
        function(shop(), treads=4)
    assert "threads" in str(refused.value.hint)


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "localhost:8000", "db.example.com:443/"])
def test_a_server_without_its_scheme_is_not_taken_for_a_folder(address: str) -> None:
    with pytest.raises(ConfigurationError, match="has no scheme") as refused:
        Address.parse(address)
    assert f"http://{address}" in (refused.value.hint or "")
    assert Address.parse(f"./{address}").kind == "folder"
