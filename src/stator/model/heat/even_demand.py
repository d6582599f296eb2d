"""The units of an even demand that a token bucket serves over some seconds, without a loop.

``serve_evenly`` equals a ``TokenBucket`` that is asked second by second for requests of one unit:
each second serves what is asked, as far as units are left, and then the bucket refills, up to its
size. What does not divide evenly falls into the first seconds, one unit each. The tests compare
both, and both with the embedded engine.
"""

from __future__ import annotations


def serve_evenly(
    level: float, rate: float, size: float, units: float, seconds: int
) -> tuple[float, float]:
    """Return the units served, and the level after ``seconds`` seconds.

    ``level`` is at least 0, and ``size`` at least ``rate``.
    """
    each, rest = divmod(units, seconds)
    if each + 1.0 <= rate and each + 1.0 <= level:  # most minutes: the bucket only fills
        return units, min(size, level + seconds * rate - units)
    first = int(rest)
    if first == 0:
        return _serve(level, rate, size, units / seconds, seconds)
    served, level = _serve(level, rate, size, each + 1.0, first)
    left = units - first * (each + 1.0)
    others = seconds - first
    more, level = _serve(level, rate, size, left / others, others)
    return served + more, level


def _serve(
    level: float, rate: float, size: float, asked: float, seconds: int
) -> tuple[float, float]:
    """Serve ``asked`` units in each second."""
    served = min(asked, level)
    level = min(size, level - served + rate)
    seconds -= 1
    # From here on, the level is at least the rate.
    if asked <= rate:
        return served + asked * seconds, min(size, level + seconds * (rate - asked))
    more = min(asked * seconds, level + (seconds - 1) * rate) if seconds else 0.0
    return served + more, level + seconds * rate - more
