"""Branches of a pattern that tracing cannot see, found in the pattern's bytecode.

A pattern's function runs once, with symbols in place of arguments. A symbol refuses to be true or
false, so ``if status:`` raises an error. Python asks no object about ``status is None``,
``isinstance(status, str)`` or an exception that never comes. Such a branch would silently go one
way for all calls.
"""

from __future__ import annotations

import dis
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Final

_TESTS_OF_TYPE: Final = ("isinstance", "issubclass", "type", "callable", "hasattr")
_LOADS: Final = ("LOAD_FAST", "LOAD_DEREF")


@dataclass(frozen=True, slots=True)
class HiddenBranch:
    """A statement that behaves differently for symbols than for values, and its line."""

    line: int
    what: str


def hidden_branches(code: CodeType, parameters: Collection[str]) -> Iterator[HiddenBranch]:
    """Yield the branches in a function's code that depend on its parameters, in order."""
    found = list(dis.get_instructions(code))
    line = code.co_firstlineno
    for at, each in enumerate(found):
        here = each.positions.lineno if each.positions is not None else None
        line = here or line
        before = [name for one in found[max(0, at - 2) : at] for name in _loaded(one, parameters)]
        after = [name for one in found[at + 1 : at + 3] for name in _loaded(one, parameters)]
        if "IF_NONE" in each.opname or "IF_NOT_NONE" in each.opname or each.opname == "IS_OP":
            for name in before[-1:]:
                yield HiddenBranch(line, f"whether {name} is None, or is another object")
        elif each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and each.argval in _TESTS_OF_TYPE:
            for name in after[:1]:
                yield HiddenBranch(line, f"{each.argval}({name}, ...)")
        elif each.opname.startswith("MATCH_"):
            yield HiddenBranch(line, "a match statement")
        elif each.opname == "CHECK_EXC_MATCH" or _catches_all(found, at):
            yield HiddenBranch(line, "try and except")


def _loaded(instruction: dis.Instruction, parameters: Collection[str]) -> list[str]:
    """Return the parameters that an instruction loads. Some instructions load two variables."""
    if not instruction.opname.startswith(_LOADS):
        return []
    value = instruction.argval
    return [
        name for name in (value if isinstance(value, tuple) else (value,)) if name in parameters
    ]


def _catches_all(found: list[dis.Instruction], at: int) -> bool:
    """Whether an ``except`` without a class, or a ``finally``, begins here. ``with`` is neither."""
    if found[at].opname != "PUSH_EXC_INFO":
        return False
    following = {each.opname for each in found[at + 1 : at + 4]}
    return not following & {"WITH_EXCEPT_START", "CHECK_EXC_MATCH", "LOAD_GLOBAL"}
