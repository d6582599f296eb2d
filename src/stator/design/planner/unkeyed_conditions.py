"""Unkeyed conditions: what a need asks and its key does not answer, and who checks it.

If the index holds the fields of a condition, DynamoDB checks the condition by a filter. The reader
checks all other conditions: it fetches the whole items by their keys, and drops what does not
match. Such a read pays for every item that it fetches. In return, the index needs no copy of the
fields, and updates of these fields do not write the index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from stator.design.entities.conditions import Comparison, Condition
from stator.design.entities.derived_parts import source_field
from stator.design.planner.estimates import Estimates
from stator.design.planner.needs.need import FieldSpan, fields_of
from stator.design.planner.paths.served_need import ServedNeed
from stator.design.planner.selectivity import fraction


@dataclass(frozen=True)
class UnkeyedConditions:
    """Conditions of one need that its key does not answer.

    ``blunt`` has the comparisons of a range with a bound that the key cannot exclude exactly (see
    ``ServedNeed.is_blunt``).
    """

    served: ServedNeed
    equal: tuple[str, ...] = ()
    spans: tuple[FieldSpan, ...] = ()
    filters: tuple[Condition, ...] = ()
    blunt: tuple[Comparison, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.equal or self.spans or self.filters or self.blunt)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions, in the order in which a filter names them."""
        tests = self.served.need.equal_tests
        return (
            *(tests[name] for name in self.equal if name in tests),
            *(test for span in self.spans for test in span.tests),
            *self.blunt,
            *self.filters,
        )

    def kept(self, estimates: Estimates) -> float:
        """Return the share of the items under the key that pass these conditions."""
        need = self.served.need
        held = self.served.key_fields
        before = fraction(need, held, estimates)
        share = fraction(need, (*held, *self.equal), estimates) / before if before else 1.0
        share *= math.prod(need.numbers.spans.get(span.field, 1.0) for span in self.spans)
        for condition, part in zip(need.filters, need.numbers.filter_shares):
            share *= part if condition in self.filters else 1.0
        return min(1.0, share)


def unkeyed_conditions(served: ServedNeed, *, is_exact: bool) -> UnkeyedConditions:
    """Return all conditions that the key does not answer.

    ``is_exact`` means that the key is a field itself, which excludes every bound of a range.
    """
    is_blunt = not is_exact and served.is_blunt and served.span is not None
    blunt = served.span.tests if is_blunt and served.span is not None else ()
    return UnkeyedConditions(served, served.left_equal, served.left_spans, served.filters, blunt)


def divided(
    whole: UnkeyedConditions, shown: frozenset[str], keys: frozenset[str]
) -> tuple[UnkeyedConditions, UnkeyedConditions]:
    """Divide conditions into those that DynamoDB checks, and those that the reader checks.

    ``shown`` has the fields that the index holds. ``keys`` has the fields that are key attributes
    of the index: DynamoDB refuses filters on them, so the reader checks these.
    """
    if not whole:
        return whole, whole
    served = whole.served
    seen = shown - keys

    def part(*, early: bool) -> UnkeyedConditions:
        return UnkeyedConditions(
            served,
            tuple(name for name in whole.equal if (source_field(name) in seen) is early),
            tuple(span for span in whole.spans if (span.field in seen) is early),
            tuple(each for each in whole.filters if (_fields(served, each) <= seen) is early),
            tuple(test for test in whole.blunt if (test.field.name in seen) is early),
        )

    return part(early=True), part(early=False)


def _fields(served: ServedNeed, condition: Condition) -> frozenset[str]:
    return fields_of(served.need, (condition,))
