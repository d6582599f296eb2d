"""Example calls: the key condition of a pattern filled with values of the right types."""

from __future__ import annotations

from typing import Any

from stator.design.patterns.pattern import Pattern
from stator.design.plan import key_text as keys
from stator.design.plan.plan import Step


def example_arguments(pattern: Pattern[..., Any], steps: tuple[Step, ...]) -> dict[str, Any]:
    """Values of the types that the keys require, whatever the annotations say."""
    tests = [test for step in steps for each in step.conditions for test in each]
    parts = [part for test in tests for bound in test.bounds for part in bound.parts]
    parts += [each for part in parts for each in part.of]
    found: dict[str, Any] = {}
    for at, (name, annotation) in enumerate(pattern.parameters.items()):
        wanted = next(
            (keys.encoding_named(part.encoding).python for part in parts if part.value == name), str
        )
        value = keys.example(name, annotation, at)
        fits = type(keys.plain(value)) is wanted
        found[name] = value if fits else keys.example(name, wanted, at)
    return found


def example_call(pattern: Pattern[..., Any], steps: tuple[Step, ...]) -> str:
    """The key condition with example values."""
    arguments = example_arguments(pattern, steps)
    shown = []
    for condition in (each for step in steps for each in step.conditions):
        terms = []
        for test in condition:
            values = []
            for bound in test.bounds:
                filled = bound.fill(arguments, 0) or {"NULL": True}
                [(kind, content)] = filled.items()
                values.append(f'"{content}"' if kind == "S" else str(content))
            terms.append(test.written(test.attribute, values))
        shown.append(" AND ".join(terms))
    return "; ".join(shown)
