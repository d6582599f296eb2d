"""The sketch against exact counts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.engine.companions.insights.top_keys import TopKeys
from stator.errors import StorageCorrupt

_WEIGHTS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([b"a", b"b", b"c"]), st.binary(min_size=1, max_size=2)),
        st.integers(1, 20).map(lambda halves: halves / 2),
    ),
    max_size=300,
)


def exact(weights: list[tuple[bytes, float]]) -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    for key, weight in weights:
        found[key] += weight  # type: ignore[assignment]
    return found


def check(top: TopKeys, weights: list[tuple[bytes, float]], most: int) -> None:
    true = exact(weights)
    total = sum(true.values())
    assert top.total == total
    for key, count in top.counts.items():
        assert true[key] <= count <= true[key] + top.errors[key]
        assert top.errors[key] <= total / most
    for key, count in true.items():
        if count > total / most:
            assert key in top.counts, "a heavy key has a counter for certain"


@given(_WEIGHTS, st.integers(1, 12))
def test_counts_are_right_within_their_error(weights: list[tuple[bytes, float]], most: int) -> None:
    top = TopKeys(most)
    for key, weight in weights:
        top.add(key, weight)
    check(top, weights, most)
    assert len(top.counts) <= most


@given(_WEIGHTS)
def test_few_keys_are_counted_exactly(weights: list[tuple[bytes, float]]) -> None:
    few = [(key[:1], weight) for key, weight in weights]
    top = TopKeys.of(few)
    true = exact(few)
    if len(true) <= 256:
        assert dict(top.heaviest(1000)) == dict(true)
    ranked = [count for _, count in top.heaviest(5)]
    assert ranked == sorted(true.values(), reverse=True)[:5]


@given(_WEIGHTS, _WEIGHTS)
def test_a_stored_sketch_goes_on_as_before(
    first: list[tuple[bytes, float]], second: list[tuple[bytes, float]]
) -> None:
    top = TopKeys.of(first)
    again = TopKeys.unpack(top.pack())
    assert (again.counts, again.errors, again.total) == (top.counts, top.errors, top.total)
    for key, weight in second:
        again.add(key, weight)
    check(again, first + second, 256)


@pytest.mark.parametrize("record", [b"", b"\x02abc", b"\x01abc"])
def test_a_damaged_sketch_is_not_misread(record: bytes) -> None:
    with pytest.raises(StorageCorrupt):
        TopKeys.unpack(record)
