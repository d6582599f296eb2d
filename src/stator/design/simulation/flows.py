"""Flows: calls of one shape, at a rate that changes with time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stator.design.simulation.call_shapes import CallShape
from stator.design.simulation.traffic_shape import SimulatedLoad, TrafficShape


class Flow(Protocol):
    """The calls of one pattern or load."""

    @property
    def shape(self) -> CallShape:
        """The units that one call takes now, and the keys at which it takes them."""
        ...

    @property
    def progress(self) -> float:
        """The share of a load that is done, from 0 to 1.

        A load in key order has reached this share of the key range.
        """
        ...

    def peak(self) -> float:
        """Return the largest number of calls in any second."""
        ...

    def rate(self, second: int) -> float:
        """Return the number of calls in this second of the run.

        Callers must not go back: each second must be later than the last one.
        """
        ...

    def settle(self, served: float) -> None:
        """Record that ``served`` more calls have passed. A load then has fewer items left."""
        ...

    def change_times(self) -> frozenset[int]:
        """Return the seconds at which the rate or the shape changes."""
        ...


class DeclaredFlow:
    """The calls of a pattern at its declared rate, varied by the shape of the traffic."""

    progress = 0.0

    def __init__(self, shape: CallShape, per_second: float, traffic: TrafficShape) -> None:
        self.shape = shape
        self._per_second = per_second
        self._traffic = traffic

    def peak(self) -> float:
        return max(map(self.rate, self._traffic.change_times()))

    def rate(self, second: int) -> float:
        return self._per_second * self._traffic.factor(self.shape.name, second)

    def settle(self, served: float) -> None:
        pass

    def change_times(self) -> frozenset[int]:
        return self._traffic.change_times()


class LoadFlow:
    """The puts of a bulk load. Refused puts are sent again, so the load takes longer."""

    def __init__(self, shape: CallShape, load: SimulatedLoad, seconds: int) -> None:
        self.shape = shape
        self._load = load
        self._seconds = seconds
        self._left = load.items

    @property
    def progress(self) -> float:
        return 1.0 - self._left / self._load.items

    def peak(self) -> float:
        return self._load.per_second

    def rate(self, second: int) -> float:
        return min(self._load.per_second, self._left)

    def settle(self, served: float) -> None:
        self._left = max(0.0, self._left - served)
        if self._left < 1e-6:
            self._left = 0.0

    def change_times(self) -> frozenset[int]:
        return frozenset(range(self._seconds))


class MeasuredFlow:
    """The calls of a pattern as they were measured, second by second.

    ``shapes`` has a shape for each minute, because keys that are hot change over time.
    """

    progress = 0.0

    def __init__(self, shapes: Sequence[CallShape], calls: Sequence[float]) -> None:
        self._shapes = shapes
        self._calls = calls
        self.shape = shapes[0]

    def peak(self) -> float:
        return max(self._calls)

    def rate(self, second: int) -> float:
        self.shape = self._shapes[min(second // 60, len(self._shapes) - 1)]
        return self._calls[second] if second < len(self._calls) else 0.0

    def settle(self, served: float) -> None:
        pass

    def change_times(self) -> frozenset[int]:
        before = -1.0
        found = set(range(0, len(self._calls) + 60, 60))
        for second, calls in enumerate((*self._calls, 0.0)):
            if calls != before:
                found.add(second)
            before = calls
        return frozenset(found)
