"""Admission: which share of calls passes in one second, when partitions and limits are short.

The idea. A call is charged to several nodes: the partition of its key in the table, the partition
of each index key, and the limits of each table and index. The call passes only if every node has
room, and a refused call takes nothing from any of them. A node is short if calls ask it for more
units than it has left. Calls arrive mixed, so a short node lets the same share of all its calls
pass.

So each short node has one unknown, its passing share. The shares are right if every short node
serves exactly what it has room for, given that the other nodes refuse calls, too. ``solve`` finds
them by repetition: a node's next share lies between the last one and the one that would fill its
room. The step is small enough for all short nodes of one call to move at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

_ROUNDS: Final = 80
_PRECISION: Final = 1e-4
SLIGHT: Final = 1e-3
"""A smaller share of refused calls in a second is rounding."""

NodeShares = tuple[tuple[int, float], ...]
"""Nodes, each with its share of the units of a leg."""


@dataclass(frozen=True, slots=True)
class LegNodes:
    """The nodes of one leg of a call: its partitions, and the limits of its table or index.

    ``limit`` is the node of the limits, or None if that node is left out.
    """

    units: float
    nodes: NodeShares
    limit: int | None


@dataclass(frozen=True, slots=True)
class GroupNodes:
    """The calls of a flow that concern one group of values, and the nodes that they are charged to.

    ``share`` is the share of the flow's calls that are in this group.
    """

    share: float
    legs: tuple[LegNodes, ...]


@dataclass(frozen=True, slots=True)
class Admission:
    """The result for one second.

    ``passing`` has the share of calls that pass, by flow. ``served`` and ``refused`` are units by
    node. Refused units are the units that reached the node when it had none left. ``blame`` is the
    share of a flow's calls that each node refused.
    """

    passing: Mapping[int, float]
    served: Mapping[int, float]
    refused: Mapping[int, float]
    blame: Mapping[int, Mapping[int, float]]


def solve(
    flows: Mapping[int, Sequence[GroupNodes]], rates: Sequence[float], rooms: Mapping[int, float]
) -> Admission:
    """Return which shares of the calls pass in one second.

    ``flows`` has all flows that touch a short node, by number. ``rates`` has the calls a second of
    every flow. ``rooms`` has the units that each short node has left for these flows.
    """
    reduced = {at: _reduced(groups, rooms) for at, groups in flows.items()}
    shares = dict.fromkeys(rooms, 1.0)
    depth = max((_short_nodes(group) for groups in reduced.values() for group in groups), default=1)
    for _ in range(_ROUNDS):
        arriving = _arriving(reduced, rates, shares)
        moved = 0.0
        for node, room in rooms.items():
            units = arriving.get(node, 0.0)
            wanted = min(1.0, room / units) if units > 0 else 1.0
            after = shares[node] ** (1 - 1 / depth) * wanted ** (1 / depth) if wanted > 0 else 0.0
            moved = max(moved, abs(after - shares[node]))
            shares[node] = after
        if moved < _PRECISION:
            break
    shares = {node: 1.0 if share > 1 - SLIGHT else share for node, share in shares.items()}
    return _admission(flows, reduced, rates, shares)


def _reduced(groups: Iterable[GroupNodes], rooms: Mapping[int, float]) -> list[GroupNodes]:
    """Return the groups without the nodes that have room for all calls.

    Groups with the same short nodes are joined into one.
    """
    found: dict[tuple[LegNodes, ...], float] = {}
    for group in groups:
        legs = []
        for leg in group.legs:
            nodes = tuple((node, share) for node, share in leg.nodes if node in rooms)
            limit = leg.limit if leg.limit in rooms else None
            if nodes or limit is not None:
                legs.append(LegNodes(leg.units, nodes, limit))
        found[tuple(legs)] = found.get(tuple(legs), 0.0) + group.share
    return [GroupNodes(share, legs) for legs, share in found.items()]


def _short_nodes(group: GroupNodes) -> int:
    return max(1, sum(bool(leg.nodes) + (leg.limit is not None) for leg in group.legs))


def _passing(leg: LegNodes, shares: Mapping[int, float]) -> float:
    """Return the share of calls that the partitions of a leg let pass.

    ``shares`` has the passing share of each short node. Other nodes let all calls pass.
    """
    return 1.0 - sum(share * (1.0 - shares[node]) for node, share in leg.nodes if node in shares)


def _limit_share(leg: LegNodes, shares: Mapping[int, float]) -> float:
    return 1.0 if leg.limit is None else shares.get(leg.limit, 1.0)


def _arriving(
    flows: Mapping[int, Sequence[GroupNodes]], rates: Sequence[float], shares: Mapping[int, float]
) -> dict[int, float]:
    """Return the units that reach each short node, less the calls that other nodes refuse.

    ``shares`` has the passing share of each short node.
    """
    found: dict[int, float] = {}
    for at, groups in flows.items():
        for group in groups:
            through = [(_passing(leg, shares), _limit_share(leg, shares)) for leg in group.legs]
            for place, leg in enumerate(group.legs):
                others = prod(a * b for at, (a, b) in enumerate(through) if at != place)
                units = rates[at] * group.share * leg.units * others
                by_nodes, by_limit = through[place]
                for node, share in leg.nodes:
                    found[node] = found.get(node, 0.0) + units * share * by_limit
                if leg.limit is not None:
                    found[leg.limit] = found.get(leg.limit, 0.0) + units * by_nodes
    return found


def _admission(
    flows: Mapping[int, Sequence[GroupNodes]],
    reduced: Mapping[int, Sequence[GroupNodes]],
    rates: Sequence[float],
    shares: Mapping[int, float],
) -> Admission:
    passing: dict[int, float] = {}
    served: dict[int, float] = {}
    blame: dict[int, dict[int, float]] = {}
    for at, groups in flows.items():
        for group in groups:
            through = [_passing(leg, shares) * _limit_share(leg, shares) for leg in group.legs]
            for place, leg in enumerate(group.legs):
                others = prod(each for where, each in enumerate(through) if where != place)
                units = rates[at] * group.share * leg.units * others * _limit_share(leg, shares)
                for node, share in leg.nodes:
                    served[node] = served.get(node, 0.0) + units * share * shares.get(node, 1.0)
        passing[at] = 0.0
        blame[at] = {}
        for group in reduced[at]:
            passed = prod(_passing(leg, shares) * _limit_share(leg, shares) for leg in group.legs)
            passing[at] += group.share * passed
            _assign(blame[at], group, shares, group.share * (1 - passed))
    arriving = _arriving(reduced, rates, shares)
    refused = {node: arriving.get(node, 0.0) * (1 - share) for node, share in shares.items()}
    return Admission(passing, served, refused, blame)


def _assign(
    blame: dict[int, float], group: GroupNodes, shares: Mapping[int, float], refused: float
) -> None:
    """Add a group's refused calls to ``blame``, divided among the nodes that refuse them.

    Each node gets calls in proportion to the share that it refuses.
    """
    weights: dict[int, float] = {}
    for leg in group.legs:
        for node, share in leg.nodes:
            weights[node] = weights.get(node, 0.0) + share * (1 - shares[node])
        if leg.limit is not None:
            weights[leg.limit] = weights.get(leg.limit, 0.0) + 1 - shares[leg.limit]
    total = sum(weights.values())
    for node, weight in weights.items():
        if total > 0 and weight > 0:
            blame[node] = blame.get(node, 0.0) + refused * weight / total
