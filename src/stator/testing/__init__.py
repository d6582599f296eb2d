"""For tests: an engine per test, virtual time, seeded faults, and boto3 without a socket.

pytest finds the fixtures ``stator_engine``, ``stator_clock``, ``stator_connect``,
``dynamodb_client``, ``dynamodb_resource`` and ``cloudwatch_client`` once Stator is installed
(``plugin``). ``boto`` connects boto3 without a socket. ``faults`` makes calls fail, ``kill_switch``
kills a program at each of its calls, and ``schedules`` runs a test under many seeds.
``partition_heat`` shows and splits partitions and throttles calls, ``shards`` splits the shards of
a stream, and ``storage_damage`` flips bytes on disk. Stator's own tests use the same tools. The
engine itself is in ``stator.engine``, the clock in ``stator.clock``.

Every pytest run in an environment with Stator loads this package for its plugin. The modules are
therefore imported only when one of their names is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.lazy_names import homes_of, lazy_names

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
    from stator.testing.partition_heat import PartitionState as PartitionState
    from stator.testing.partition_heat import TableHeat as TableHeat
    from stator.testing.partition_heat import delay_reads as delay_reads
    from stator.testing.partition_heat import heat as heat
    from stator.testing.partition_heat import set_collection_limit as set_collection_limit
    from stator.testing.partition_heat import set_quota as set_quota
    from stator.testing.partition_heat import split_partition as split_partition
    from stator.testing.partition_heat import throttle as throttle
    from stator.testing.schedules import run_schedules as run_schedules
    from stator.testing.shards import open_shards as open_shards
    from stator.testing.shards import roll_shards as roll_shards
    from stator.testing.shards import split_shard as split_shard
    from stator.testing.storage_damage import FlippedByte as FlippedByte
    from stator.testing.storage_damage import damage as damage
    from stator.testing.storage_damage import repair as repair

_HOME_OF = homes_of(
    {
        "stator.clock": "VirtualClock",
        "stator.testing.boto": "boto3_client boto3_resource boto3_session wire",
        "stator.testing.faults": (
            "AsyncFaultyTransport Fault Faults FaultyTransport InjectedFault InterceptedCall faulty"
        ),
        "stator.testing.partition_heat": (
            "PartitionState TableHeat delay_reads heat set_collection_limit set_quota "
            "split_partition throttle"
        ),
        "stator.testing.kill_switch": "KillPoint KillSwitch Killed kill_points kill_points_async",
        "stator.testing.schedules": "run_schedules",
        "stator.testing.shards": "open_shards roll_shards split_shard",
        "stator.testing.storage_damage": "FlippedByte damage repair",
    }
)
__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
