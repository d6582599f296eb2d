"""The same random programs on Stator and on DynamoDB Local."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from stator.engine import Engine
from stator.engine import engine as engine_module
from tests.dynamodb_local import dynamodb_local

from .answers import Local, Remote, comparable
from .differences import known, parted
from .programs import CREATE, TABLE, Program, programs

# `make test` runs this on both builds: at length on the compiled one, which people install.
_EXAMPLES = 40 if str(engine_module.__file__).endswith(".py") else 150


@pytest.fixture(scope="module")
def remote() -> Iterator[Remote]:
    with dynamodb_local() as address:
        remote = Remote(address)
        yield remote
        remote.close()


def play(remote: Remote, program: Program) -> None:
    """Run a program on both; a request they may answer differently is left out of the comparison
    and ends it.
    """
    remote.ask("DeleteTable", {"TableName": TABLE})
    assert remote.ask("CreateTable", CREATE)[0] == "ok"
    with Engine.open() as engine:
        local = Local(engine)
        assert local.ask("CreateTable", CREATE)[0] == "ok"
        for operation, request in program:
            ours, theirs = local.ask(operation, request), remote.ask(operation, request)
            if parted(local, operation, request, ours):
                return
            if comparable(operation, ours) != comparable(operation, theirs):
                assert known(operation, request, ours, theirs), (operation, request, ours, theirs)
                return


@settings(max_examples=_EXAMPLES, suppress_health_check=list(HealthCheck))
@given(program=programs)
def test_random_programs_get_the_same_answers(remote: Remote, program: Program) -> None:
    play(remote, program)


@pytest.mark.slow
@settings(max_examples=5_000, suppress_health_check=list(HealthCheck))
@given(program=programs)
def test_many_random_programs_get_the_same_answers(remote: Remote, program: Program) -> None:
    play(remote, program)
