"""The planner's effort, counted and not timed: a blow-up of candidates is noticed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from stator.design.planner import assignment
from stator.design.planner.planner import Planner


def big_design(entities: int, patterns: int) -> Any:
    path = Path(__file__).parents[2] / "bench" / "planner.py"
    spec = importlib.util.spec_from_file_location("bench_planner", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_design("single-table", entities, patterns)


def test_the_candidates_and_steps_of_a_large_design_stay_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = 0
    solve = assignment.Assignment.solve

    def counted(self: assignment.Assignment) -> Any:
        nonlocal nodes
        found = solve(self)
        nodes += self.nodes
        return found

    monkeypatch.setattr(assignment.Assignment, "solve", counted)
    planning = Planner(big_design(60, 200))
    priced = kept = 0
    components = planning.tables()[0][1]
    for component in planning.components(components):
        for choices in component.choices:
            priced += len(choices.use_dollars)
            kept += len(choices.secondary)
    assert planning.run().proven
    # 3,119 priced, 876 kept and 38,179 steps when this was written.
    assert priced < 6_000
    assert kept < 1_800
    assert nodes < 80_000


def test_twice_the_design_takes_at_most_about_three_times_the_effort(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """198 entities and 400 patterns, against half of both: steps of the search, not seconds."""
    nodes: list[int] = []
    solve = assignment.Assignment.solve

    def counted(self: assignment.Assignment) -> Any:
        found = solve(self)
        nodes.append(self.nodes)
        return found

    monkeypatch.setattr(assignment.Assignment, "solve", counted)
    counts = []
    for entities, patterns in ((99, 200), (198, 400)):
        nodes.clear()
        assert Planner(big_design(entities, patterns)).run().proven
        counts.append(sum(nodes))
    assert counts[1] < 3 * counts[0]
