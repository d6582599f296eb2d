"""For tests: an engine per test, virtual time, seeded faults, and boto3 without a socket.

pytest finds the fixtures ``stator_engine``, ``stator_clock``, ``stator_connect``,
``dynamodb_client`` and ``dynamodb_resource`` once Stator is installed (``plugin``). ``boto``
connects boto3 without a socket. ``faults`` makes calls fail, ``kill_switch`` kills a program at
each of its calls, ``schedules`` runs a test under many seeds, ``shards`` splits the shards of a
stream, and ``storage_damage`` flips bytes on disk. Stator's own tests use the same tools. The
engine itself is ``stator.engine``, the clock ``stator.clock``.

Every pytest run in an environment with Stator loads this package for its plugin. The modules are
therefore imported only when one of their names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stator.clock import VirtualClock as VirtualClock
    from stator.testing.boto import boto3_client as boto3_client
    from stator.testing.boto import boto3_resource as boto3_resource
    from stator.testing.boto import boto3_session as boto3_session
    from stator.testing.boto import wire as wire
    from stator.testing.faults import AsyncFaultyTransport as AsyncFaultyTransport
    from stator.testing.faults import Fault as Fault
    from stator.testing.faults import Faults as Faults
    from stator.testing.faults import FaultyTransport as FaultyTransport
    from stator.testing.faults import InjectedFault as InjectedFault
    from stator.testing.faults import InterceptedCall as InterceptedCall
    from stator.testing.faults import faulty as faulty
    from stator.testing.kill_switch import Killed as Killed
    from stator.testing.kill_switch import KillPoint as KillPoint
    from stator.testing.kill_switch import KillSwitch as KillSwitch
    from stator.testing.kill_switch import kill_points as kill_points
    from stator.testing.kill_switch import kill_points_async as kill_points_async
    from stator.testing.schedules import run_schedules as run_schedules
    from stator.testing.shards import open_shards as open_shards
    from stator.testing.shards import roll_shards as roll_shards
    from stator.testing.shards import split_shard as split_shard
    from stator.testing.storage_damage import FlippedByte as FlippedByte
    from stator.testing.storage_damage import damage as damage
    from stator.testing.storage_damage import repair as repair

_HOME_OF = {
    "VirtualClock": "stator.clock",
    "boto3_client": "stator.testing.boto",
    "boto3_resource": "stator.testing.boto",
    "boto3_session": "stator.testing.boto",
    "wire": "stator.testing.boto",
    "AsyncFaultyTransport": "stator.testing.faults",
    "Fault": "stator.testing.faults",
    "Faults": "stator.testing.faults",
    "FaultyTransport": "stator.testing.faults",
    "InjectedFault": "stator.testing.faults",
    "InterceptedCall": "stator.testing.faults",
    "faulty": "stator.testing.faults",
    "KillPoint": "stator.testing.kill_switch",
    "KillSwitch": "stator.testing.kill_switch",
    "Killed": "stator.testing.kill_switch",
    "kill_points": "stator.testing.kill_switch",
    "kill_points_async": "stator.testing.kill_switch",
    "run_schedules": "stator.testing.schedules",
    "open_shards": "stator.testing.shards",
    "roll_shards": "stator.testing.shards",
    "split_shard": "stator.testing.shards",
    "FlippedByte": "stator.testing.storage_damage",
    "damage": "stator.testing.storage_damage",
    "repair": "stator.testing.storage_damage",
}

__all__ = [
    "AsyncFaultyTransport",
    "Fault",
    "Faults",
    "FaultyTransport",
    "FlippedByte",
    "InjectedFault",
    "InterceptedCall",
    "KillPoint",
    "KillSwitch",
    "Killed",
    "VirtualClock",
    "boto3_client",
    "boto3_resource",
    "boto3_session",
    "damage",
    "faulty",
    "kill_points",
    "kill_points_async",
    "open_shards",
    "repair",
    "roll_shards",
    "run_schedules",
    "split_shard",
    "wire",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'stator.testing' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
