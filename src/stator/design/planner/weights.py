"""The prices and small charges by which the search ranks layouts.

The prices are in ``stator.design.unit_prices``. The search needs only their ratio: a write costs as
much as five reads, and a gigabyte stored for a month as much as two million reads. The plan and the
linter also show dollars in these prices.

The small charges are not part of any bill. They decide between layouts that cost the same.
"""

from __future__ import annotations

from typing import Final

from stator.design.unit_prices import READ_UNIT_DOLLARS as READ_UNIT_DOLLARS
from stator.design.unit_prices import STORAGE_BYTE_DOLLARS as STORAGE_BYTE_DOLLARS
from stator.design.unit_prices import WRITE_UNIT_DOLLARS as WRITE_UNIT_DOLLARS

INDEX_DOLLARS: Final = 1.0
"""For each index: it needs alarms and backfills, and is one more thing to understand."""

INDIRECT_DOLLARS: Final = 0.05
"""For a base key that cannot be computed from the identity, so that it must be looked up."""
CONCENTRATED_DOLLARS: Final = 0.05
FEW_VALUES: Final = 100.0
"""A partition key with fewer distinct values than this is charged ``CONCENTRATED_DOLLARS``.

Such a key cannot spread growing traffic.
"""
GUARD_LOOKUP_DOLLARS: Final = 0.05
"""For a lookup by the guard of a unique field: two requests, one after the other."""
INDEX_READ_DOLLARS: Final = 0.01
"""For a read from an index that the table could serve as well: an index lags behind the table."""
FILTERED_DOLLARS: Final = 0.05
"""For a filter that a key could replace: its cost relies on estimates, a key's does not."""
WIDE_FILTER: Final = 2.0
WIDE_FILTER_DOLLARS: Final = 3.0
"""For an index whose filter reads more than ``WIDE_FILTER`` times what it returns.

The longer key would read just the result. The read of the shorter one grows with all tenants, and
its partitions gather what different tenants happen to call by the same name.
"""
SORTED_DOLLARS: Final = 0.5
"""For a sort in memory that a key could replace: no page of it can be read alone."""
APART_DOLLARS: Final = 0.05
"""For each additional request of a pattern over several entities that is served apart."""
