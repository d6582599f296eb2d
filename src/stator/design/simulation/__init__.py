"""Heat simulation: a design's traffic on its planned keys, and where it is throttled.

``simulate`` charges the declared traffic of a design, or measured traffic, to the partitions of its
tables and indexes, and says which patterns are refused, why, for how long, and how many shards
would end the refusals. ``stator simulate`` prints the result.

    shop = Design("shop", [Order], [orders_of_user, place_order])
    found = simulate(shop, TrafficShape(spikes=(Spike("place_order", 10, at=600, seconds=300),)))
    print(found.pattern("place_order").refused_share)

The model of partitions is ``stator.model.heat``, which the embedded engine uses, too. This package
prices nothing and sends no requests.
"""

from stator.design.simulation.measured_traffic import MeasuredTraffic
from stator.design.simulation.simulation import (
    HeatedPlace,
    HeatRow,
    KeyHeat,
    LoadTime,
    PatternHeat,
    ShardCure,
    Simulation,
    SplitRecord,
)
from stator.design.simulation.simulator import simulate
from stator.design.simulation.traffic_shape import (
    BatchWindow,
    HotKey,
    Launch,
    SimulatedLoad,
    Spike,
    TrafficShape,
    ZipfKeys,
)

__all__ = [
    "BatchWindow",
    "HeatRow",
    "HeatedPlace",
    "HotKey",
    "KeyHeat",
    "Launch",
    "LoadTime",
    "MeasuredTraffic",
    "PatternHeat",
    "ShardCure",
    "SimulatedLoad",
    "Simulation",
    "Spike",
    "SplitRecord",
    "TrafficShape",
    "ZipfKeys",
    "simulate",
]
