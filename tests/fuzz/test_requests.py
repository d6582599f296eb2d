"""No request, however wrong, gets a 500, a hang, or memory that is never given back.

Compiled and interpreted builds give the same answers. A hang ends a test by its time limit.
"""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stator.engine.operations import OPERATIONS

from .mutations import SUBSTITUTES, positions, replaced
from .play import Played, ask, play
from .valid import valid_requests
from .world import new_world

_ROOT = Path(__file__).parents[2]
# Some of the changed requests delete what later ones name, so a world is not used for long.
_PER_WORLD = 10


def test_every_operation_has_requests_that_succeed() -> None:
    with new_world() as world:
        valid = valid_requests(world.names)
    assert valid.keys() == OPERATIONS
    for operation, requests in valid.items():
        for number in range(len(requests)):
            with new_world() as world:
                played = ask(world, operation, valid_requests(world.names)[operation][number])
            assert played.status == 200, (operation, number, played.body)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_any_value_at_any_position_is_answered(operation: str) -> None:
    assert_none_broken(_substituted(operation))


def _substituted(operation: str) -> Iterator[Played]:
    """Put every substitute at every position of every valid request, one at a time."""
    with new_world() as world:
        valid = valid_requests(world.names)[operation]
    for number, example in enumerate(valid):
        changes = itertools.product(positions(example), SUBSTITUTES)
        while chunk := list(itertools.islice(changes, _PER_WORLD)):
            with new_world() as world:
                request = valid_requests(world.names)[operation][number]
                for at, value in chunk:
                    yield ask(world, operation, replaced(request, at, value))


@pytest.mark.parametrize("seed", range(4))
def test_random_requests_are_answered(seed: int) -> None:
    assert_none_broken(play(seed, 5_000))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_random_requests_are_answered(seed: int) -> None:
    assert_none_broken(play(seed, 50_000))


def test_random_requests_of_each_operation_succeed() -> None:
    """A fuzzer all of whose requests are refused at the door would find nothing."""
    succeeded = Counter(
        each.operation for seed in range(3) for each in play(seed, 4_000) if each.status == 200
    )
    assert succeeded.keys() == OPERATIONS


def test_random_requests_leave_no_memory_behind() -> None:
    """The objects of a thousand requests are gone when their world is."""
    for _ in play(1, 1_000):  # caches fill
        pass
    gc.collect()
    before = len(gc.get_objects())
    for seed in range(2, 5):
        for _ in play(seed, 1_000):
            pass
    gc.collect()
    grown = len(gc.get_objects()) - before
    assert grown < 20_000, f"{grown} objects more after 3,000 requests"


def test_compiled_and_interpreted_builds_answer_the_same(tmp_path: Path) -> None:
    sources = tmp_path / "src"
    script = _ROOT / "scripts" / "compile.py"
    subprocess.run([sys.executable, script, "--link-sources", sources], check=True)
    compiled = _played_by(_ROOT / "src")
    interpreted = _played_by(sources)
    different = [pair for pair in zip(compiled, interpreted, strict=True) if pair[0] != pair[1]]
    assert not different, different[:5]


def _played_by(sources: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.play", "7", "4000"],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(sources)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def assert_none_broken(answers: Iterator[Played]) -> None:
    broken = [str(each) for each in answers if each.is_broken]
    assert not broken, f"{len(broken)} broken, such as:\n" + "\n".join(broken[:5])
