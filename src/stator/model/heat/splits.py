"""Where to split a hot partition, or why a split would not help."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from stator.model.heat.limits import HOT_KEY_SHARE, ONE_KEY_SHARE, SEQUENTIAL_SHARE
from stator.model.heat.sample import KeySample, collection_of

# Why a partition was split ...
FOR_HEAT: Final = "heat"
FOR_HOT_ITEM: Final = "hot item"
FOR_SIZE: Final = "size"
FOR_CAPACITY: Final = "capacity"
BY_TEST: Final = "test"
# ... and why a hot one was not.
ONE_KEY: Final = "one key"
SEQUENTIAL: Final = "sequential"
LOCAL_INDEX: Final = "local index"


_INSIDE: Final = 0.1
"""How much less evenly a cut between two item collections may divide the load than one inside."""

_LEAST_PART: Final = 0.05
"""A share of the load that is too small to be split off."""


@dataclass(frozen=True, slots=True)
class PartitionEvent:
    """A split, or the decision against one.

    ``began`` is when the split was decided and ``at`` when it took effect. ``cuts`` are the lower
    bounds of the new partitions. They are empty if the partition was kept as it is.
    """

    began: float
    at: float
    why: str
    low: bytes
    cuts: tuple[bytes, ...] = ()

    @property
    def is_split(self) -> bool:
        return bool(self.cuts)


def decide(
    sample: KeySample, low: bytes, high: bytes | None, *, has_local_index: bool
) -> tuple[str, tuple[bytes, ...]]:
    """Return the reason to split a hot partition, and the keys at which to cut it.

    If a split would not help, returns the reason against it, and no keys. A key that takes more
    than half of the load gets a partition of its own. Otherwise the load is halved. If the table
    has a local index, an item collection is never divided.
    """
    shares = sample.by_key()
    if not shares:
        return ONE_KEY, ()
    hottest, share = max(shares, key=lambda each: each[1])
    if share >= ONE_KEY_SHARE:
        return ONE_KEY, ()
    if has_local_index:
        shares = _by_collection(shares)
        if max(share for _, share in shares) >= ONE_KEY_SHARE:
            return LOCAL_INDEX, ()
        if len(shares) < 2:
            return LOCAL_INDEX, ()
    if sample.rising_share() >= SEQUENTIAL_SHARE:
        return SEQUENTIAL, ()
    if share > HOT_KEY_SHARE and not has_local_index:
        cuts = tuple(
            cut for cut in (hottest, hottest + b"\0") if cut > low and (high is None or cut < high)
        )
        return (FOR_HOT_ITEM, cuts) if cuts else (ONE_KEY, ())
    cut = _median(shares)
    if not has_local_index and sample.rising_share(collection_of(cut)) >= SEQUENTIAL_SHARE:
        # The keys of this collection will soon be above any cut inside it: part it from others.
        shares = _by_collection(shares)
        if len(shares) < 2 or max(share for _, share in shares) > 1 - _LEAST_PART:
            return SEQUENTIAL, ()
        cut = _median(shares)
    return FOR_HEAT, (cut,)


def _by_collection(shares: list[tuple[bytes, float]]) -> list[tuple[bytes, float]]:
    sums: dict[bytes, float] = {}
    for key, share in shares:
        sums[collection_of(key)] = sums.get(collection_of(key), 0.0) + share
    return sorted(sums.items())


def _median(shares: list[tuple[bytes, float]]) -> bytes:
    """Return the key at which a cut divides the load most evenly.

    The first key is never returned, because a cut there would leave one part empty. A key that
    starts an item collection is preferred if it divides nearly as evenly. A cut inside a collection
    helps less: if its keys rise, all its new requests soon go to the same side.
    """
    below = 0.0
    best, best_distance = shares[1][0], 2.0
    for (before, share), (key, _) in pairwise(shares):
        below += share
        is_inside = collection_of(before) == collection_of(key)
        distance = abs(below - 0.5) + (_INSIDE if is_inside else 0.0)
        if distance < best_distance:
            best, best_distance = key, distance
    return best


def middle(low: bytes, high: bytes | None) -> bytes | None:
    """Return the middle of a range of key hashes, or None if it has only one hash."""
    first = int.from_bytes(low[:8].ljust(8, b"\0"), "big")
    last = 2**64 if high is None else int.from_bytes(high[:8].ljust(8, b"\0"), "big")
    if last - first < 2:
        return None
    return ((first + last) // 2).to_bytes(8, "big")


def width(low: bytes, high: bytes | None) -> int:
    first = int.from_bytes(low[:8].ljust(8, b"\0"), "big")
    last = 2**64 if high is None else int.from_bytes(high[:8].ljust(8, b"\0"), "big")
    return last - first
