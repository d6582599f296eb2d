"""The prices and small charges by which the search ranks layouts.

Prices are those of us-east-1, on-demand, Standard class, since November 2024. The search needs only
their ratio: a write costs as much as five reads, and a gigabyte stored for a month as much as two
million reads. The plan and the linter also show dollars in these prices. The bill, in any region
and billing mode, is computed in ``stator.design.cost`` from a price file.

The small charges are not part of any bill. They decide between layouts that cost the same.
"""

from __future__ import annotations

from typing import Final

READ_UNIT_DOLLARS: Final = 0.125 / 1_000_000
WRITE_UNIT_DOLLARS: Final = 0.625 / 1_000_000
STORAGE_BYTE_DOLLARS: Final = 0.25 / 1024**3
"""One byte for a month."""
INDEX_DOLLARS: Final = 1.0
"""For each index: it brings alarms, backfills and one more thing to understand."""

INDIRECT_DOLLARS: Final = 0.05
"""For a base key that cannot be computed from the identity, so that it must be looked up."""
CONCENTRATED_DOLLARS: Final = 0.05
FEW_VALUES: Final = 100.0
"""For a partition key with fewer values than this: it cannot spread growing traffic."""
GUARD_LOOKUP_DOLLARS: Final = 0.05
"""For a lookup by the guard of a unique field: two requests, one after the other."""
INDEX_READ_DOLLARS: Final = 0.01
"""For a read from an index that the table could serve as well: an index lags behind the table."""
FILTERED_DOLLARS: Final = 0.05
"""For a filter that a key could replace: its cost relies on estimates, a key's does not."""
SORTED_DOLLARS: Final = 0.5
"""For a sort in memory that a key could replace: no page of it can be read alone."""
APART_DOLLARS: Final = 0.05
"""For each request more that a pattern over several entities sends if they are read apart."""
