"""The example of capacity: what it advises."""

from __future__ import annotations

import capacity
import pytest


def test_a_batch_on_sundays_gets_a_schedule_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    capacity.main()
    said = capsys.readouterr().out
    assert "capacity-shop: scheduled scaling 70 %. Use has the same shape every week" in said
    for place in ("writes", "GSI1 writes"):
        assert f"{place}: sunday 01:50-04:00 min=572; else min=58\n" in said
