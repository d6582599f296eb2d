"""The error tree matches its docstring, hints show in tracebacks, and errors survive the wire."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import traceback

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
    codes = [
        cls.__dict__["code"]
        for cls in _tree(ServiceError) - {ServiceError}
        if "code" in cls.__dict__
    ]
    assert sorted(codes) == sorted(BY_CODE)


@pytest.mark.parametrize("cls", BY_CODE.values())
def test_an_error_comes_back_from_the_wire_as_itself(cls: type[ServiceError]) -> None:
    error = cls("what happened")
    again = from_wire(error.status, error.wire())
    assert type(again) is cls
    assert again.message == "what happened"


def test_the_facts_of_an_error_come_back_from_the_wire() -> None:
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


def test_an_error_type_that_stator_does_not_know_keeps_its_name() -> None:
    assert (
        "SomethingNewException"
        in from_wire(400, {"__type": "x#SomethingNewException", "message": "hi"}).message
    )
    assert isinstance(from_wire(503, {}), errors.InternalServerError)


# --- hints ----------------------------------------------------------------------------------------


def _printed(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_a_hint_is_printed_below_the_message_of_a_traceback() -> None:
    code = "from stator.errors import BlobMissing; raise BlobMissing('b1')"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    message, hint = printed.splitlines()[-2:]
    assert message.endswith("BlobMissing: the blob store has no blob b1")
    assert hint.startswith("hint: connect with the blobs= ")


@pytest.mark.parametrize(
    "error",
    [
        errors.ConfigurationError("wrong", hint="do this"),
        errors.CursorRefused("wrong"),  # the hint of its class
        errors.CursorRefused("wrong", hint="do this"),  # another in its place
        errors.VersionConflict("wrong", expected=3),
        errors.LockBusy("nightly", "host-1", 12.5),
        errors.StorageFull("/data", "No space left on device"),
        errors.ScanNeeded("orders", "wrong", hint="do this", scan_dollars=2.0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_hint_is_printed_once_however_often_the_error_is_copied_or_raised(
    error: StatorError,
) -> None:
    assert error.hint is not None
    for again in (error, copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        for _ in range(2):
            with pytest.raises(type(error)) as caught:
                raise again
            assert _printed(caught.value).count("hint: ") == 1
            assert _printed(caught.value).endswith(f"{error.message}\nhint: {error.hint}\n")
        assert {**vars(again)} == {**vars(error)}
        assert str(again) == error.message


def test_a_note_added_to_a_copy_does_not_reach_the_original() -> None:
    error = errors.StorageClosed()
    copy.copy(error).add_note("only here")
    assert "only here" not in _printed(error)


def test_an_error_without_a_hint_prints_no_note() -> None:
    assert "hint" not in _printed(errors.ConfigurationError("wrong"))
