"""The identity of a metric: its account and region, namespace, name, dimensions and unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stator.model.scope import Scope

Dimensions = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as a request names it. ``dimensions`` are sorted by name."""

    scope: Scope
    namespace: str
    name: str
    dimensions: Dimensions = ()


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """A metric in one unit, which is what the store keeps. Without a unit it is "None"."""

    metric: Metric
    unit: str

    def to_json(self) -> dict[str, Any]:
        metric = self.metric
        return {
            "version": 1,
            "scope": list(metric.scope),
            "namespace": metric.namespace,
            "name": metric.name,
            "dimensions": [list(pair) for pair in metric.dimensions],
            "unit": self.unit,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> MetricSeries:
        dimensions = tuple((name, value) for name, value in data["dimensions"])
        metric = Metric(Scope(*data["scope"]), data["namespace"], data["name"], dimensions)
        return cls(metric, data["unit"])


def dimensions_of(pairs: Mapping[str, str]) -> Dimensions:
    """Return dimensions in the order in which a ``Metric`` has them."""
    return tuple(sorted(pairs.items()))
