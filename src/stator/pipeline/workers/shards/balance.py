"""The balance of leases: decides, without I/O, which leases one worker should take or ask for.

A worker's fair share is the number of readable leases, divided by the number of workers that hold
any, itself included, rounded up. A worker below its share takes free leases. If none is free, it
asks the worker with the most leases for one of them. It does so only if that worker has at least
two leases more than it has itself; otherwise leases would move back and forth.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.leases import ShardLease, WorkerGroup
from stator.pipeline.workers.shards.lineage import StreamInfo, is_ready


@dataclass(slots=True)
class Moves:
    """The leases that a worker should take, ask for, or resume.

    A lease to resume is the worker's own, but the worker is not reading its shard yet.
    """

    take: list[ShardLease] = field(default_factory=list)
    ask: list[ShardLease] = field(default_factory=list)
    resume: list[ShardLease] = field(default_factory=list)


def moves(
    group: WorkerGroup,
    streams: Mapping[str, StreamInfo],
    me: str,
    working: frozenset[str],
    now: float,
    options: WorkerOptions,
    chance: random.Random,
) -> Moves:
    """Return the leases that worker ``me`` should take, ask for or resume.

    ``working`` names the leases whose shards it reads. A lease that it owns and that is not among
    them was handed over to it.
    """
    ready = [lease for lease in group.leases.values() if is_ready(lease, group, streams)]
    held = [lease for lease in ready if not lease.is_free(now, options.drift_seconds)]
    mine = [lease for lease in held if lease.owner == me]
    free = [lease for lease in ready if lease.is_free(now, options.drift_seconds)]
    workers = {lease.owner for lease in held} | {me}
    share = min(-(-len(ready) // len(workers)), options.max_leases)
    found = Moves(resume=[lease for lease in mine if lease.name not in working])
    room = share - len(mine)
    if room <= 0:
        return found
    chance.shuffle(free)
    found.take = free[:room]
    if not free and not any(lease.wanted == me for lease in held):
        found.ask = _from_the_busiest(held, me, len(mine), chance)
    elif not free:
        found.take = _unanswered(held, me, now, options)
    return found


def _from_the_busiest(
    held: Sequence[ShardLease], me: str, count: int, chance: random.Random
) -> list[ShardLease]:
    loads = Counter(lease.owner for lease in held if lease.owner != me)
    if not loads:
        return []
    most, load = max(loads.items(), key=lambda entry: (entry[1], str(entry[0])))
    candidates = [lease for lease in held if lease.owner == most and lease.wanted is None]
    return [chance.choice(candidates)] if candidates and load >= count + 2 else []


def _unanswered(
    held: Sequence[ShardLease], me: str, now: float, options: WorkerOptions
) -> list[ShardLease]:
    return [
        lease
        for lease in held
        if lease.wanted == me and lease.wanted_at + options.handover_seconds < now
    ]
