"""Designs to export: one table, several, local indexes, composite keys, odd names, numbers."""

from __future__ import annotations

from datetime import datetime
from functools import cache

from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident, ttl
from stator.design.export.source import ExportSource
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import updates, write

from .. import models, shop


class Match(Entity):
    match_id: int = ident()
    tournament: str
    region: str
    played_at: datetime
    score: int = 0
    expires: datetime | None = ttl(days=30, default=None)


@read(rps=10)
def match(match_id: int) -> Query[Match]:
    return find(Match).where(Match.match_id == match_id)


@read(rps=5, returns=20)
def matches(tournament: str, region: str) -> Query[Match]:
    return (
        find(Match)
        .where(Match.tournament == tournament, Match.region == region)
        .newest_first(Match.played_at)
    )


@write(rps=5)
def decide() -> object:
    return updates(Match.score, Match.region)


def games() -> Design:
    return Design("2-games.v1", [Match], [match, matches, decide], layout="table-per-entity")


@cache
def sources() -> dict[str, ExportSource]:
    designs = {
        "shop": models.shop(),
        "shop-tables": models.shop("table-per-entity"),
        "social": models.social(),
        "orders": shop.shop,
        "games": games(),
    }
    return {name: ExportSource(design, design.plan()) for name, design in designs.items()}


NAMES = ("shop", "shop-tables", "social", "orders", "games")
