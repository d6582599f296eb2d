"""The limits that can refuse a request, by the names that DynamoDB reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stator.model.heat.limits import READ

# The last parts of ThrottlingReasons' ``reason``, in the order in which limits are checked.
ACCOUNT_LIMIT: Final = "AccountLimitExceeded"
MAXIMUM: Final = "MaxOnDemandThroughputExceeded"
PROVISIONED: Final = "ProvisionedThroughputExceeded"
KEY_RANGE: Final = "KeyRangeThroughputExceeded"
CAUSES: Final = (ACCOUNT_LIMIT, MAXIMUM, PROVISIONED, KEY_RANGE)


@dataclass(frozen=True, slots=True)
class ThrottleCause:
    """One limit that refuses a request.

    It belongs to the table, or to the global index ``index``.
    """

    limit: str
    kind: int
    index: str | None
    on_demand: bool

    @property
    def reason(self) -> str:
        """The reason as DynamoDB writes it, such as TableWriteKeyRangeThroughputExceeded."""
        place = "Table" if self.index is None else "Index"
        return f"{place}{'Read' if self.kind == READ else 'Write'}{self.limit}"
