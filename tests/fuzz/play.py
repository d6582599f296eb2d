"""Plays numbered sequences of random requests, on one engine.

``python -m tests.fuzz.play SEED COUNT`` prints a line for each request: its operation, the status
and a digest of the answer. Two builds of the engine must print the same.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from .mutations import mutated
from .valid import valid_requests
from .world import World, new_world

# A world is used for this many requests: some of them delete tables, and most later ones would
# then only show how a missing table is answered.
_WORLD_REQUESTS = 60


@dataclass(frozen=True, slots=True)
class Played:
    """One request and its answer. ``error`` is set if the engine broke instead of answering."""

    seed: int
    number: int
    operation: str
    request: Any
    status: int
    body: Any
    error: BaseException | None = None

    @property
    def is_broken(self) -> bool:
        return self.error is not None or self.status >= 500

    def __str__(self) -> str:
        request = orjson.dumps(self.request).decode()
        shown = request if len(request) < 2000 else request[:2000] + "..."
        return f"seed {self.seed}, request {self.number}: {self.operation} {shown}: {self.error!r}"


def play(seed: int, count: int, after: Callable[[World], None] | None = None) -> Iterator[Played]:
    """Play ``count`` requests. The same seed gives the same requests.

    ``after`` is called with each world when its requests are done.
    """
    chance = random.Random(seed)  # a seed to repeat it by
    played = 0
    while played < count:
        with new_world() as world:
            for _ in range(min(_WORLD_REQUESTS, count - played)):
                yield _one(world, chance, seed, played)
                played += 1
            if after is not None:
                after(world)


def _one(world: World, chance: random.Random, seed: int, number: int) -> Played:
    valid = valid_requests(world.names)
    operation = chance.choice(sorted(valid))
    request = chance.choice(valid[operation])
    if chance.random() < 0.95:
        request = mutated(request, chance)
    return ask(world, operation, request, seed, number)


def ask(world: World, operation: str, request: Any, seed: int = 0, number: int = 0) -> Played:
    try:
        status, body = world.ask(operation, request)
    except Exception as error:  # whatever it is, a client would have got a 500
        return Played(seed, number, operation, request, 500, None, error)
    return Played(seed, number, operation, request, status, body)


# Requests and answers of these contain ids that are random by nature.
_RANDOM_IDS = ("Backup", "Export", "Import", "Restore", "Shard", "Records", "Stream")
_RANDOM_MEMBERS = frozenset({"TableId", "NextToken"})


def _digest(played: Played) -> str:
    """Return a digest of what must be equal in two runs; of the kind of answer if ids are in it."""
    body = played.body
    if any(word in played.operation for word in _RANDOM_IDS):
        body = body.get("__type") if isinstance(body, dict) else None
    plain = orjson.dumps(_comparable(body), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(plain).hexdigest()[:16]


def _comparable(body: Any) -> Any:
    if isinstance(body, dict):
        return {
            name: _comparable(value) for name, value in body.items() if name not in _RANDOM_MEMBERS
        }
    if isinstance(body, list):
        return [_comparable(value) for value in body]
    return body


if __name__ == "__main__":
    for each in play(int(sys.argv[1]), int(sys.argv[2])):
        if each.error is not None:
            print(each.number, each.operation, 500, type(each.error).__name__)
        else:
            print(each.number, each.operation, each.status, _digest(each))
