"""Months of a bill."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stator.errors import ConfigurationError
from stator.ops.report.month import Month


@pytest.mark.parametrize(
    ("text", "hours", "name"),
    [
        ("2026-11", 720, "November 2026"),
        ("2026-12", 744, "December 2026"),
        ("2028-02", 696, "February 2028"),
    ],
)
def test_a_month_has_its_hours(text: str, hours: int, name: str) -> None:
    found = Month.parse(text)
    assert (found.hours, str(found)) == (hours, name)
    assert found.end == found.start + hours * 3600
    assert Month.at(found.start) == Month.at(found.end - 1) == found
    assert Month.at(found.end) != found


def test_the_year_ends_with_december() -> None:
    assert Month(2026, 12).end == int(datetime(2027, 1, 1, tzinfo=UTC).timestamp())


@pytest.mark.parametrize("text", ["2026", "2026-13", "2026-00", "11-2026", "2026-1", "0000-01"])
def test_what_is_no_month_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a month"):
        Month.parse(text)
