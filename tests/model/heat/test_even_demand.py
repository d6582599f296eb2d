"""Even demand in one step, against a token bucket that is asked second by second."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.model.heat.bucket import TokenBucket
from stator.model.heat.even_demand import serve_evenly


def second_by_second(
    level: int, rate: int, size: int, units: int, seconds: int
) -> tuple[float, float]:
    bucket = TokenBucket(rate, size, level, 0.0)
    each, rest = divmod(units, seconds)
    served = 0.0
    for second in range(seconds):
        asked = each + (second < rest)
        taken = min(asked, bucket.room(float(second)))
        bucket.take(taken, float(second))
        served += taken
    return served, bucket.level_at(float(seconds))


@given(
    st.integers(0, 3000), st.integers(1, 50), st.integers(1, 300), st.integers(0, 5000),
    st.sampled_from([1, 7, 20, 60]),
)  # fmt: skip
def test_it_equals_the_bucket(level: int, rate: int, burst: int, units: int, seconds: int) -> None:
    size = rate * burst
    level = min(level, size)
    assert serve_evenly(level, rate, size, units, seconds) == pytest.approx(
        second_by_second(level, rate, size, units, seconds)
    )


@given(
    st.floats(0, 1000), st.floats(1, 50), st.floats(0, 4000), st.floats(0, 100),
)  # fmt: skip
def test_more_to_give_never_serves_less(
    level: float, rate: float, units: float, more: float
) -> None:
    size = rate * 300
    level = min(level, size)
    served, left = serve_evenly(level, rate, size, units, 60)
    richer, _ = serve_evenly(min(level + more, size), rate, size, units, 60)
    faster, _ = serve_evenly(level, rate + more, size + more * 300, units, 60)
    assert served <= richer + 1e-6 and served <= faster + 1e-6
    assert 0 <= served <= units + 1e-6 and -1e-6 <= left <= size + 1e-6
