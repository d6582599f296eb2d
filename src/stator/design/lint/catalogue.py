"""The lint catalogue: every code with its title and its rule. docs/lint has a page for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from stator.design.lint import (
    indexes,
    items,
    partition_keys,
    reads,
    refused_traffic,
    storage,
    writes,
)
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding

RuleFunction = Callable[[Facts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class LintRule:
    """A lint code, its title and its rule.

    ``rule`` is None if the planner reports the problem while it plans. Rules need a finished plan.
    """

    code: str
    title: str
    rule: RuleFunction | None = None


CATALOGUE: Final = (
    LintRule("ST001", "the design cannot be planned"),
    LintRule("ST002", "a pattern needs a Scan"),
    LintRule("ST003", "a pattern that no key can serve"),
    LintRule("ST004", "an ignore entry without effect"),
    LintRule("ST101", "low-cardinality partition key", partition_keys.low_cardinality),
    LintRule("ST102", "time-based partition key", partition_keys.time_based),
    LintRule("ST103", "monotonic identity", partition_keys.monotonic),
    LintRule("ST104", "hot key", partition_keys.hot_key),
    LintRule("ST105", "unbounded item collection", partition_keys.large_collection),
    LintRule("ST106", "base key beyond the identity", partition_keys.beyond_identity),
    LintRule("ST107", "traffic that will be throttled", refused_traffic.throttled),
    LintRule("ST201", "items over 1 KB", items.over_one_kilobyte),
    LintRule("ST202", "items over 4 KB", items.over_four_kilobytes),
    LintRule("ST203", "items near or over 400 KB", items.over_four_hundred_kilobytes),
    LintRule("ST204", "nested maps that should be flat", items.nested_member_compared),
    LintRule("ST205", "long attribute names at volume", items.long_names),
    LintRule("ST206", "key too long", items.key_too_long),
    LintRule("ST207", "stored more than used", items.rarely_read),
    LintRule("ST208", "items at a unit boundary", items.near_unit_boundary),
    LintRule("ST209", "old items of a log", storage.old_items),
    LintRule("ST210", "entity that no pattern reads", storage.unused_entities),
    LintRule("ST301", "too many indexes", indexes.too_many),
    LintRule("ST302", "unused index", indexes.unused),
    LintRule("ST303", "ALL projection of large items", indexes.large_projection),
    LintRule("ST304", "index key that changes often", indexes.key_changes_often),
    LintRule("ST305", "local index without need", indexes.needless_local),
    LintRule("ST306", "dear index for a rare pattern", indexes.rarely_read),
    LintRule("ST401", "filter that discards most of what it reads", reads.wasteful_filter),
    LintRule("ST402", "strongly consistent read on a global index"),
    LintRule("ST403", "numbers stored as strings", reads.numbers_in_strings),
    LintRule("ST404", "TTL used for correctness", reads.ttl_for_correctness),
    LintRule("ST405", "Scan allowed", reads.scan_allowed),
    LintRule("ST406", "a call that reads many pages", reads.many_pages),
    LintRule("ST407", "count of a large collection", reads.counted_by_reading),
    LintRule(
        "ST408", "many pages for the largest value", reads.many_pages_of_the_largest
    ),
    LintRule("ST501", "transaction too large", writes.large_transaction),
    LintRule("ST502", "unsharded counter", writes.unsharded_counter),
    LintRule("ST503", "many small items", writes.unpacked_writes),
    LintRule("ST504", "transaction over many entities", writes.wide_transaction),
)  # fmt: skip

CODES: Final = frozenset(entry.code for entry in CATALOGUE)
