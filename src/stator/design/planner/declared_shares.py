"""Declared shares: which share of items meets a condition, as ``share()`` facts say or imply.

A fact about one condition also decides others:

- ``share(x == c, p)`` says that ``x != c`` holds for the rest, and so does ``~(x == c)``.
- The values of an Enum, a Literal or a bool have all items between them. If the shares of some
  values are declared, the other values have the rest. With several such values, each is assumed to
  have an equal part of it, which is a guess. The last one has exactly the rest.
- ``x.is_in([a, b])`` has the shares of ``a`` and ``b``.
"""

from __future__ import annotations

from typing import Any

from stator.design.entities.conditions import Comparison, Condition, FieldRef, Inverse
from stator.design.entities.derived_parts import PartComparison, derived_part
from stator.design.entities.entity import Entity, info
from stator.design.patterns.param import Param
from stator.design.plan import key_text as keys
from stator.design.planner.distinct_values import Guess
from stator.design.planner.estimates import Estimates
from stator.design.planner.needs.need import equals, is_optional
from stator.design.value_facts import possible_values
from stator.model.quantities import amount


def value_share(
    entity: type[Entity], name: str, value: Any, estimates: Estimates
) -> tuple[float | None, tuple[Guess, ...]]:
    """Return the share of items whose field has a value, and the guess it rests on, if any.

    The share is None if no fact decides it. ``name`` may also be a derived part.
    """
    facts = estimates.design.facts
    declared = facts.share(entity, equals(entity, name, value))
    if declared is not None or derived_part(name) is not None:
        return declared, ()
    values = _possible_values(entity, name, estimates)
    known = {keys.plain(each): share for each, share in facts.frequent(entity, name)}
    if values is None or value is None or not known or len(known) >= values:
        return None, ()
    absent = 0.0
    if is_optional(info(entity), name):
        absent = 1.0 - estimates.present(entity, name)
    others = values - len(known)
    share = max(0.0, 1.0 - absent - sum(known.values())) / others
    if others == 1:
        return share, ()
    text = f"{FieldRef(entity, (name,))!r} == {keys.plain(value)!r}"
    return share, (
        Guess(
            f"{text}: {amount(100 * share)}% of the items, an equal part of the rest",
            f"share({text}, ...)",
        ),
    )


def _possible_values(entity: type[Entity], name: str, estimates: Estimates) -> int | None:
    """Return how many values an Enum, a Literal or a bool has, by its type and facts."""
    of_type = possible_values(info(entity), name)
    if of_type is None:
        return None
    declared = estimates.design.facts.distinct(entity, (name,))
    return of_type if declared is None else min(of_type, round(declared))


def condition_share(
    entity: type[Entity], condition: Condition, estimates: Estimates
) -> tuple[float | None, tuple[Guess, ...]]:
    """Return the share of items that meet a condition, and the guesses it rests on.

    The share is None if no fact decides it.
    """
    declared = estimates.design.facts.share(entity, condition)
    if declared is not None:
        return declared, ()
    match condition:
        case Inverse(operand):
            return _opposite(condition_share(entity, operand, estimates))
        case PartComparison():
            return None, ()
        case Comparison(field, "<>", (value,)) if len(field.path) == 1 and _is_constant(value):
            return _opposite(value_share(entity, field.name, value, estimates))
        case Comparison(field, "=", (value,)) if len(field.path) == 1 and _is_constant(value):
            return value_share(entity, field.name, value, estimates)
        case Comparison(field, "in", values) if len(field.path) == 1:
            return _any_of(entity, field.name, values, estimates)
    return None, ()


def _opposite(
    found: tuple[float | None, tuple[Guess, ...]],
) -> tuple[float | None, tuple[Guess, ...]]:
    share, guesses = found
    return (None, ()) if share is None else (1.0 - share, guesses)


def _any_of(
    entity: type[Entity], name: str, values: tuple[Any, ...], estimates: Estimates
) -> tuple[float | None, tuple[Guess, ...]]:
    total, guesses = 0.0, list[Guess]()
    for value in values:
        if not _is_constant(value):
            return None, ()
        share, found = value_share(entity, name, value, estimates)
        if share is None:
            return None, ()
        total += share
        guesses += found
    return min(1.0, total), tuple(guesses)


def _is_constant(value: Any) -> bool:
    return value is not None and not isinstance(value, (Param, FieldRef))
