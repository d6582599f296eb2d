"""Schedules: runs of a test under many seeds, each of which can be replayed by its seed."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

from stator.errors import ConfigurationError

SEED_VARIABLE = "STATOR_SEED"
"""The environment variable that names the only seed to run, for a replay."""


def run_schedules(schedule: Callable[[int], Any], seeds: int | Iterable[int] = 1000) -> int:
    """Call ``schedule`` with each seed, and return the number of runs.

    If ``seeds`` is a number, the seeds are 0 to ``seeds`` - 1. The first failure is raised
    unchanged, with a note that names the seed. To replay that run alone, pass ``seeds=[417]``, or
    set the environment variable STATOR_SEED=417. If ``schedule`` is asynchronous, each run gets an
    event loop of its own.
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
