"""A label has a bounded number of values."""

from __future__ import annotations

import pytest

from stator.errors import ConfigurationError
from stator.metrics.label_cap import LabelCap


def test_values_past_the_limit_are_other_and_earlier_ones_stay() -> None:
    cap = LabelCap(2)
    assert [cap.capped(each) for each in "abcab"] == ["a", "b", "other", "a", "b"]


def test_a_cap_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_labels=0 is not positive"):
        LabelCap(0)
