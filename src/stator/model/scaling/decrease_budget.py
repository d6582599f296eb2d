"""How often the provisioned units of one table or one index may be decreased.

DynamoDB allows four decreases in a UTC day at any time, and then one whenever the last is an hour
ago: at most 27 in a day. Reads and writes share the count; a table and each of its indexes have
their own ("Service quotas" of the Developer Guide; the words of the refusal say the same).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DECREASES_AT_WILL: Final = 4
DECREASE_SECONDS: Final = 3600
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class DecreaseRecord:
    """The number of decreases in the UTC day of the last one, and its time."""

    count: int = 0
    last: float | None = None

    def today(self, now: float) -> int:
        """Return the number of decreases in the UTC day of ``now``."""
        return self.count if self.last is not None and _day(self.last) == _day(now) else 0

    def next_at(self, now: float) -> float:
        """Return when the next decrease is allowed: ``now``, or a later time."""
        last = self.last
        if last is None or self.today(now) < DECREASES_AT_WILL or now - last >= DECREASE_SECONDS:
            return now
        return min(last + DECREASE_SECONDS, (_day(last) + 1.0) * _DAY_SECONDS)

    def allows(self, now: float) -> bool:
        return self.next_at(now) <= now

    def after(self, now: float) -> DecreaseRecord:
        """Return the record with one more decrease, at ``now``."""
        return DecreaseRecord(self.today(now) + 1, now)


def _day(moment: float) -> float:
    return moment // _DAY_SECONDS
