"""Patterns with contradictory conditions: the error names the pattern and its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from stator import Design, Entity, Query, attr, find, ident, read
from stator.errors import DesignError


class Score(Entity):
    team: str = ident()
    score_id: str = ident()
    points: int | None = None


@read(rps=10)
def below_nothing(team: str) -> Query[Score]:
    return find(Score).where(Score.team == team, Score.points == None, attr(Score.points) < 2)  # noqa: E711


@read(rps=10)
def above_nothing(team: str) -> Query[Score]:
    return find(Score).where(attr(Score.points) >= 2, Score.points == None, Score.team == team)  # noqa: E711


@pytest.mark.parametrize("pattern", [below_nothing, above_nothing])
def test_a_contradiction_is_refused_with_its_pattern_and_place(pattern: object) -> None:
    name = getattr(pattern, "name", "")
    with pytest.raises(DesignError, match="not None") as refused:
        Design("scores", [Score], [pattern]).plan()  # type: ignore[list-item]
    assert Path(__file__).name in str(refused.value) and f": {name}: " in str(refused.value)
    assert "contradicts another" in str(refused.value.hint)
