"""Slots: which paths share an index, solved as a graph colouring.

A shared index has generic key attributes (GSI1PK, GSI1SK), into which each entity writes a path of
its own; items without the attributes are not in it. Two paths of one entity cannot be in the same
index. Paths of two entities can, if both want the same projection. Paths that one query reads
together must be in the same index. So the paths are vertices (paths read together form one vertex),
edges join paths that need different indexes, and colours are indexes. Components have few paths, so
the colouring is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from stator.design.planner.cost_model import Placement

Vertex = tuple[Placement, ...]
IMPOSSIBLE: Final = (1000, 1000)
"""What ``slots_needed`` returns if two paths of one entity would have to share an index."""


def slots_needed(
    opened: Iterable[Sequence[Placement]], groups: Iterable[Vertex]
) -> tuple[int, int]:
    """Return the smallest numbers of shared indexes that can hold the chosen placements.

    ``opened`` has the placements chosen for each entity. The first number is for indexes that
    project KEYS_ONLY, the second for those that project ALL. Returns IMPOSSIBLE if paths that must
    share an index belong to the same entity.
    """
    placements = [each for several in opened for each in several]
    together = list(groups)
    if any(
        len({one.path.entity for one in vertex}) < len(vertex)
        for vertex in _vertices(placements, together)
    ):
        return IMPOSSIBLE
    keys_only = colour(
        [each for each in placements if each.shares_slot and each.projection == "KEYS_ONLY"], ()
    )
    everything = colour(
        [each for each in placements if each.shares_slot and each.projection == "ALL"], together
    )
    return len(set(keys_only.values())), len(set(everything.values()))


def colour(
    placements: Sequence[Placement],
    groups: Iterable[Vertex],
    fixed: Mapping[Placement, int] | None = None,
    free: int = 0,
) -> dict[Placement, int]:
    """Return an index number for each placement, using as few numbers as possible.

    The result is the same for equal inputs. Numbers below ``free`` are existing indexes, and
    ``fixed`` has the placements that are already in them. Placements that are read together take
    the number of the first fixed placement among them. They get another number if a different path
    of one of their entities already has that one.
    """
    vertices = _vertices(placements, groups)
    given = _given(vertices, fixed or {})
    for count in range(free, free + len(vertices) + 1):
        found = _with(count, vertices, given, free)
        if found is not None:
            return {
                placement: number for vertex, number in zip(vertices, found) for placement in vertex
            }
    raise AssertionError("there are always enough colours")


def _vertices(placements: Sequence[Placement], groups: Iterable[Vertex]) -> list[Vertex]:
    wanted = set(placements)
    merged: list[set[Placement]] = []
    for group in groups:
        members = set(group) & wanted
        touching = [each for each in merged if each & members]
        merged = [each for each in merged if each not in touching]
        if members:
            merged.append(members.union(*touching))
    inside = set().union(*merged) if merged else set()
    merged += [{each} for each in wanted - inside]
    ordered = [tuple(sorted(each, key=lambda one: one.rank)) for each in merged]
    return sorted(ordered, key=lambda vertex: (-len(vertex), [one.rank for one in vertex]))


def _given(vertices: list[Vertex], fixed: Mapping[Placement, int]) -> dict[int, int]:
    """Return the index numbers that ``fixed`` decides, by position in ``vertices``."""
    given: dict[int, int] = {}
    held: set[tuple[int, object]] = set()
    # Vertices that are entirely fixed come first: new members give way.
    for at in sorted(
        range(len(vertices)), key=lambda at: (not all(each in fixed for each in vertices[at]), at)
    ):
        vertex = vertices[at]
        number = next((fixed[each] for each in vertex if each in fixed), None)
        places = {(number, each.path.entity) for each in vertex}
        if number is not None and not places & held:
            given[at] = number
            held |= {(number, entity) for _, entity in places}
    return given


def _with(
    count: int, vertices: list[Vertex], given: Mapping[int, int], free: int
) -> list[int] | None:
    entities = [{placement.path.entity for placement in vertex} for vertex in vertices]
    chosen: list[int] = []

    def descend() -> bool:
        at = len(chosen)
        if at == len(vertices):
            return True
        highest = max(free - 1, max(chosen, default=-1))
        for number in [given[at]] if at in given else range(min(count, highest + 2)):
            if not any(
                chosen[other] == number and entities[other] & entities[at] for other in range(at)
            ):
                chosen.append(number)
                if descend():
                    return True
                chosen.pop()
        return False

    return chosen if descend() else None
