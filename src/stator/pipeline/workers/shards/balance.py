"""The balance of leases: decides, without I/O, which leases one worker should take or ask for.

Each worker has a fair share of the leases whose shards may be read now: their number, divided by
the number of workers, and rounded up. The workers are those that hold a lease, and the one that
decides. The share is never above ``max_leases``.

A worker below its share takes free leases. If none is free, it asks the worker with the most leases
for one of them. It asks only if that worker has at least two leases more than the asking worker;
otherwise leases would move back and forth.
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
    """The leases that a worker should take, ask another worker for, or resume.

    A lease to resume already belongs to the worker, which does not read its shard yet.
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

    ``working`` names the leases whose shards the worker reads now. A lease that the worker owns,
    but that is not in ``working``, is to be resumed. Usually another worker has handed it over.
    ``chance`` picks among the leases.
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
