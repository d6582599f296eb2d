"""Changes a request: one position in turn, or several at random.

A position is a path of names and list indexes. Texts with a grammar (expressions, statements,
ARNs, tokens) are also changed from within, since a substitute would only ever show how their
first check answers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

Position = tuple[str | int, ...]

SUBSTITUTES: tuple[Any, ...] = (
    None,
    "",
    "x",
    "x" * 3000,
    0,
    -1,
    2**31,
    2**63,
    1.5,
    True,
    [],
    {},
    [None],
    {"": None},
    [[]],
    [{}],
    {"S": None},
    {"N": ""},
    {"M": {"a": None}},
    {"L": [None, {"S": "x"}]},
    {"SS": [None]},
    {"x": {"x": {"x": {}}}},
)
_CHARACTERS = "aZ09.:/#[](){}'\"\\ %_-=\u0000\u00e9\U0001f600"
_WORDS = (
    *("AND", "OR", "NOT", "SET", "REMOVE", "ADD", "DELETE", "BETWEEN", "IN", "=", "<>", "(", ")"),
    *(",", "+", "-", "[0]", "[-1]", ".", ":zz", "#zz", ":one", "#n", "size(", "a", "*", "'", "?"),
    *("IS", "MISSING", "VALUE", "FROM", "WHERE", "<<", ">>", "{", "}", "contains(a, :one)"),
    *("if_not_exists(a, :one)", "list_append(a, :one)", "1e999", "\u0000", "é" * 40),
)


def positions(value: Any, at: Position = ()) -> Iterator[Position]:
    """Yield every position in a request except the whole."""
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for step, inner in entries:
        yield (*at, step)
        yield from positions(inner, (*at, step))


def replaced(request: Any, at: Position, substitute: Any) -> Any:
    """Return a copy of a request with another value at a position."""
    copy = deepcopy(request)
    target = copy
    for step in at[:-1]:
        target = target[step]
    target[at[-1]] = deepcopy(substitute)
    return copy


def value_at(request: Any, at: Position) -> Any:
    for step in at:
        request = request[step]
    return request


def mutated(request: Any, chance: random.Random) -> Any:
    """Return a copy of a request with one to three random changes."""
    copy = deepcopy(request)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(positions(copy))
        if not places:
            return {chance.choice(("TableName", "Limit", "")): chance.choice(SUBSTITUTES)}
        at = chance.choice(places)
        holder = value_at(copy, at[:-1])
        _change(holder, at[-1], chance)
    return copy


def _change(holder: Any, step: Any, chance: random.Random) -> None:
    value = holder[step]
    match chance.randrange(6):
        case 0:
            del holder[step]
        case 1 if isinstance(value, str):
            holder[step] = mutated_text(value, chance)
        case 2 if isinstance(value, str):
            holder[step] = mutated_words(value, chance)
        case 3 if isinstance(holder, list):
            holder.insert(chance.randrange(len(holder) + 1), deepcopy(value))
        case 3 if isinstance(holder, dict):
            holder[mutated_text(str(step), chance)] = holder.pop(step)
        case 4 if isinstance(holder, dict):
            other = chance.choice(list(holder))
            holder[step], holder[other] = holder[other], holder[step]
        case _:
            holder[step] = deepcopy(chance.choice(SUBSTITUTES))


def mutated_text(text: str, chance: random.Random) -> str:
    """Change one to three characters."""
    characters = list(text)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(characters) + 1)
        match chance.randrange(4):
            case 0:
                characters.insert(at, chance.choice(_CHARACTERS))
            case 1:
                del characters[at : at + 1]
            case 2:
                characters[at : at + 1] = [chr(chance.randrange(32, 127))]
            case _:
                del characters[at:]
    return "".join(characters)


def mutated_words(text: str, chance: random.Random) -> str:
    """Insert, drop, repeat or swap words of an expression or a statement."""
    words = text.split(" ")
    at = chance.randrange(len(words))
    match chance.randrange(4):
        case 0:
            words.insert(at, chance.choice(_WORDS))
        case 1:
            words[at] = chance.choice(_WORDS)
        case 2:
            words.insert(at, words[chance.randrange(len(words))])
        case _:
            del words[at]
    return " ".join(words)
