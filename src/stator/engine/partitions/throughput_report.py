"""The counts of a capacity meter, as lines of text for the person who runs a server.

DynamoDB has no request that shows partitions, so neither has the server: ``stator serve`` prints
this report when it ends, and on SIGUSR1. Hot keys come from each partition's sample of its latest
minutes, so an idle minute empties the list. Keys may be personal data: a report names them by the
first digits of their hash, unless it is asked for the keys themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from stator.engine.keyspace import HASH_BYTES
from stator.engine.partitions.capacity_meter import OBSERVED, CapacityMeter
from stator.model.heat.resource import ThroughputResource
from stator.model.heat.throttle_cause import ThrottleCause
from stator.model.quantities import plural

_HOTTEST: Final = 5
_EVENTS: Final = 5
_LEAST_SHARE: Final = 0.05
_HASH_DIGITS: Final = 12


def throughput_report(meter: CapacityMeter, *, show_keys: bool = False) -> list[str]:
    """Return the report of every table and index that was used; the caller holds the lock.

    For each: units served, requests refused by reason, the hottest keys of partitions that refused
    some, and splits, or why a hot partition was not split.
    """
    lines: list[str] = []
    verb = "would be refused" if meter.mode == OBSERVED else "refused"
    for entry in meter.used():
        for resource in entry.all():
            where = entry.source.name + (f"/{resource.index}" if resource.index else "")
            lines += _resource_lines(where, resource, verb, show_keys)
    return lines or ["no requests were charged"]


def _resource_lines(
    where: str, resource: ThroughputResource, verb: str, show_keys: bool
) -> Iterator[str]:
    partitions = resource.partitions
    read = sum(each.read_served for each in partitions)
    written = sum(each.write_served for each in partitions)
    refused = sum(resource.refused.values())
    yield (
        f"{where}: {plural(len(partitions), 'partition')}, "
        f"{read:,.0f} read and {written:,.0f} write units served since the last splits, "
        f"{plural(refused, 'request')} {verb}"
    )
    for reason, count in _by_reason(resource):
        yield f"  {count:,} {verb}: {reason}"
    for share, key in _hottest(resource):
        yield f"  hot key {_shown(key, show_keys)}: {share:.0%} of the load of its partition"
    for event in resource.events[-_EVENTS:]:
        at = datetime.fromtimestamp(event.at, UTC).strftime("%H:%M:%S")
        done = f"split for {event.why}" if event.is_split else f"not split: {event.why}"
        yield f"  {at} UTC {done}"


def _by_reason(resource: ThroughputResource) -> list[tuple[str, int]]:
    on_demand = resource.settings.on_demand
    return [
        (ThrottleCause(limit, kind, resource.index, on_demand).reason, count)
        for (kind, limit), count in sorted(resource.refused.items())
    ]


def _hottest(resource: ThroughputResource) -> list[tuple[float, bytes]]:
    """Return the keys with the largest shares in the partitions that refused requests."""
    found: list[tuple[float, bytes]] = []
    for each in resource.partitions:
        if each.read_refused or each.write_refused:
            shares: dict[bytes, float] = {}
            for key, share in each.sample.by_key():
                partition_key = _partition_key(key)
                shares[partition_key] = shares.get(partition_key, 0.0) + share
            found += [(share, key) for key, share in shares.items() if share >= _LEAST_SHARE]
    return sorted(found, reverse=True)[:_HOTTEST]


def _partition_key(key: bytes) -> bytes:
    """Return the hash, the length and the bytes of a partition key of one attribute."""
    start = HASH_BYTES + 2
    return key[: start + int.from_bytes(key[HASH_BYTES:start], "big")]


def _shown(key: bytes, show_keys: bool) -> str:
    digest = key[:HASH_BYTES].hex()[:_HASH_DIGITS]
    if not show_keys:
        return f"#{digest}"
    raw = key[HASH_BYTES + 2 :]
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = ""
    return repr(text) if text.isprintable() and text else f"0x{raw.hex()} (#{digest})"
