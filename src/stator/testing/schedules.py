"""Schedules: a test that runs under many seeds, and is replayed by the seed that failed."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

from stator.errors import ConfigurationError

SEED_VARIABLE = "STATOR_SEED"
"""The environment variable that names the one seed to replay."""


def run_schedules(schedule: Callable[[int], Any], seeds: int | Iterable[int] = 1000) -> int:
    """Call ``schedule`` with each seed, 0 to ``seeds`` - 1, and return how many were run.

    The first failure is raised as it is, with a note that names the seed. To replay that schedule
    alone, pass ``seeds=[417]``, or set STATOR_SEED=417 and leave the program as it is. If
    ``schedule`` is asynchronous, each run gets an event loop of its own.
    """
    chosen = _replayed()
    if chosen is None:
        chosen = range(seeds) if isinstance(seeds, int) else seeds
    ran = 0
    for seed in chosen:
        try:
            result = schedule(seed)
            if inspect.iscoroutine(result):
                asyncio.run(result)
        except Exception as error:
            error.add_note(
                f"The schedule of seed {seed} failed, after {ran} that passed."
                f" Replay it with seeds=[{seed}], or with {SEED_VARIABLE}={seed}."
            )
            raise
        ran += 1
    return ran


def _replayed() -> Iterable[int] | None:
    given = os.environ.get(SEED_VARIABLE)
    if given is None:
        return None
    try:
        return [int(given)]
    except ValueError:
        raise ConfigurationError(
            f"{SEED_VARIABLE} is {given!r}, which is not a number",
            hint="set it to the seed that a failed run names, or unset it",
        ) from None
