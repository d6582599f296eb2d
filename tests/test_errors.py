"""The error tree is what its docstring says, and errors survive the wire."""

from __future__ import annotations

import re

import pytest

from stator import errors
from stator.errors import ServiceError, StatorError, from_wire
from stator.errors.service import BY_CODE


def _tree(cls: type[BaseException]) -> set[type[BaseException]]:
    return {
        cls,
        *(
            leaf
            for sub in cls.__subclasses__()
            if sub.__module__.startswith(f"{errors.__name__}.")
            for leaf in _tree(sub)
        ),
    }


def test_the_docstring_lists_every_class() -> None:
    assert errors.__doc__ is not None
    listed = set(re.findall(r"\+-- (\w+)", errors.__doc__)) | {"StatorError"}
    assert (
        listed
        == {cls.__name__ for cls in _tree(StatorError)}
        == set(errors.__all__) - {"from_wire"}
    )


def test_every_code_has_one_class() -> None:
    codes = [cls.code for cls in _tree(ServiceError) - {ServiceError} if "code" in cls.__dict__]  # type: ignore[attr-defined]
    assert sorted(codes) == sorted(BY_CODE)


@pytest.mark.parametrize("cls", BY_CODE.values())
def test_an_error_comes_back_from_the_wire_as_itself(cls: type[ServiceError]) -> None:
    error = cls("what happened")
    again = from_wire(error.status, error.wire())
    assert type(again) is cls
    assert again.message == "what happened"


def test_facts_come_back_too() -> None:
    failed = errors.ConditionFailed(item={"pk": {"S": "a"}})
    again = from_wire(400, failed.wire())
    assert isinstance(again, errors.ConditionFailed)
    assert again.item == {"pk": {"S": "a"}}
    canceled = errors.TransactionCanceled(
        reasons=[{"Code": "None"}, {"Code": "ConditionalCheckFailed"}]
    )
    assert canceled.message.endswith("[None, ConditionalCheckFailed]")
    rebuilt = from_wire(400, canceled.wire())
    assert isinstance(rebuilt, errors.TransactionCanceled)
    assert rebuilt.reasons == canceled.reasons


def test_an_unknown_type_keeps_its_name() -> None:
    assert (
        "SomethingNewException"
        in from_wire(400, {"__type": "x#SomethingNewException", "message": "hi"}).message
    )
    assert isinstance(from_wire(503, {}), errors.InternalServerError)
