"""The lint catalogue: every code, what it is called, and the rule that finds it. Each code has a page in docs/lint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from stator.design.lint import indexes, items, keys, partition_keys, reads, writes
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding

Rule = Callable[[Facts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Entry:
    """``rule`` is None for what is found while planning, not in a plan."""

    code: str
    title: str
    rule: Rule | None = None


CATALOGUE: Final = (
    Entry("ST001", "the design cannot be planned"),
    Entry("ST002", "a pattern needs a Scan"),
    Entry("ST003", "a pattern no key can serve"),
    Entry("ST004", "an ignore that ignores nothing"),
    Entry("ST101", "low-cardinality partition key", partition_keys.low_cardinality),
    Entry("ST102", "time-based partition key", partition_keys.time_based),
    Entry("ST103", "monotonic identity", partition_keys.monotonic),
    Entry("ST104", "hot key", partition_keys.hot_key),
    Entry("ST105", "item collection without bound", partition_keys.large_collection),
    Entry("ST201", "items over 1 KB", items.over_one_kilobyte),
    Entry("ST202", "items over 4 KB", items.over_four_kilobytes),
    Entry("ST203", "items near or over 400 KB", items.over_four_hundred_kilobytes),
    Entry("ST204", "nested maps that should be flat", items.nested_member_compared),
    Entry("ST205", "long attribute names at volume", items.long_names),
    Entry("ST206", "key too long", keys.too_long),
    Entry("ST301", "too many indexes", indexes.too_many),
    Entry("ST302", "unused index", indexes.unused),
    Entry("ST303", "ALL projection of large items", indexes.large_projection),
    Entry("ST304", "index key that changes often", indexes.key_changes_often),
    Entry("ST401", "filter that reads far more than it returns", reads.wasteful_filter),
    Entry("ST402", "strongly consistent read on a global index"),
    Entry("ST403", "numbers in strings, out of order", reads.numbers_in_strings),
    Entry("ST404", "TTL used for correctness", reads.ttl_for_correctness),
    Entry("ST405", "Scan allowed", reads.scan_allowed),
    Entry("ST406", "a call that reads many pages", reads.many_pages),
    Entry("ST501", "transaction too large", writes.large_transaction),
    Entry("ST502", "unsharded counter", writes.unsharded_counter),
)  # fmt: skip

CODES: Final = frozenset(entry.code for entry in CATALOGUE)
