"""A month of a bill. AWS bills months of UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from stator.errors import ConfigurationError

_MONTH: Final = re.compile(r"(\d{4})-(\d{2})")
_NAMES: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
KEPT_DAYS: Final = 455
"""How long CloudWatch keeps points of an hour."""


@dataclass(frozen=True, slots=True)
class Month:
    """A month by its year and its number, from 1."""

    year: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Month:
        """Read a month such as 2026-11."""
        found = _MONTH.fullmatch(text)
        if found is None or not 1 <= int(found[2]) <= 12 or int(found[1]) < 2012:
            raise ConfigurationError(
                f"{text!r} is not a month", hint="write the year and the month: 2026-11"
            )
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def at(cls, moment: float) -> Month:
        """Return the month of a time, in seconds since the epoch."""
        found = datetime.fromtimestamp(moment, UTC)
        return cls(found.year, found.month)

    @property
    def start(self) -> int:
        """The first second of the month, since the epoch."""
        return int(datetime(self.year, self.number, 1, tzinfo=UTC).timestamp())

    @property
    def end(self) -> int:
        """The first second after the month."""
        following = self.year * 12 + self.number  # months since the year 0, counted from 0
        year, month = divmod(following, 12)
        return int(datetime(year, month + 1, 1, tzinfo=UTC).timestamp())

    @property
    def hours(self) -> int:
        """The hours of the month: 720 for one of 30 days."""
        return (self.end - self.start) // 3600

    def __str__(self) -> str:
        return f"{_NAMES[self.number - 1]} {self.year}"
