"""Items that lack the attribute of a field count with the field's default, in every view.

Each view is compared with the same view of items that have all attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stator import Design, Engine, Entity, TableSettings, connect, ident, large
from stator.pipeline import (
    Projection,
    StreamApp,
    View,
    WorkerOptions,
    avg,
    count,
    latest,
    maximum,
    minimum,
    percentiles,
    sum_of,
    top,
)
from stator.pipeline.views.rebuild.rebuild import RebuildOptions
from stator.tables.db import Db


class Old(Entity, name="Job"):
    job_id: str = ident()
    cents: int


class Short(Entity, name="Job"):
    job_id: str = ident()
    cents: int
    prio: int = 7
    maybe: int | None = 3
    made: str = "made"
    kind: str = "mail"
    note: str | None = None


class Long(Entity, name="Job"):
    job_id: str = ident()
    cents: int
    prio: int = 7
    maybe: int | None = 3
    made: str = "made"
    kind: str = "mail"
    note: str | None = None
    text: str = large(default="")


class OldLong(Entity, name="Job"):
    job_id: str = ident()
    cents: int
    text: str = large(default="")


def rows(view: View, db: Db) -> Any:
    reader = view.on(db)
    return [dict(reader.get(**group) or {}) for group in reader.groups()]


def view(**options: Any) -> Callable[[Any], tuple[View, Callable[[Db], Any]]]:
    def declare(job: Any) -> tuple[View, Callable[[Db], Any]]:
        made = View("v", of=job, **{name: each(job) for name, each in options.items()})
        return made, lambda db: rows(made, db)

    return declare


def projection(**options: Any) -> Callable[[Any], tuple[Projection, Callable[[Db], Any]]]:
    def declare(job: Any) -> tuple[Projection, Callable[[Db], Any]]:
        made = Projection("v", of=job, **{name: each(job) for name, each in options.items()})
        return made, lambda db: [dict(each) for each in made.on(db).find(kind="mail")]

    return declare


def n(job: Any) -> Any:
    return count()


VIEWS: dict[str, Any] = {
    "where": view(where=lambda job: job.kind == "mail", n=n),
    "where two": view(where=lambda job: (job.prio > 5) & (job.maybe == 3), n=n),
    "where none": view(where=lambda job: ~job.note.exists(), n=n),
    "by": view(by=lambda job: [job.prio, job.kind], n=n),
    "by an optional field": view(by=lambda job: job.maybe, n=n),
    "sums": view(
        n=n,
        s=lambda job: sum_of(job.prio),
        a=lambda job: avg(job.maybe),
        c=lambda job: count(job.kind),
        p=lambda job: percentiles(job.prio),
    ),
    "maximum": view(m=lambda job: maximum(job.prio), o=lambda job: maximum(job.maybe)),
    "minimum": view(m=lambda job: minimum(job.made)),
    "top of fields": view(t=lambda job: top(9, by=job.prio, fields=[job.kind, job.maybe])),
    "top of items": view(
        t=lambda job: top(9, by=job.prio), of_one=lambda job: latest(by=job.kind)
    ),
    "projection": projection(
        key=lambda job: job.kind,
        sort=lambda job: job.prio,
        fields=lambda job: [job.job_id, job.maybe],
        where=lambda job: job.made == "made",
    ),
}  # fmt: skip


def shown(name: str, *, old: Any, new: Any, rebuild: bool) -> Any:
    """The results of a view over three items that ``old`` wrote and one that ``new`` wrote."""
    with Engine.open() as engine:
        former, db = (connect(Design("jobs", [each]), engine) for each in (old, new))
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        made, read = VIEWS[name](new)
        app = StreamApp(db.context.schema.design, "app")
        app.add(made)
        for number in range(3):
            former.put(old(job_id=f"j{number}", cents=number))
        db.put(new(job_id="j3", cents=3))
        with app.start(db, WorkerOptions(start="oldest", idle_seconds=0.02)) as running:
            running.catch_up()
            if rebuild:
                made.on(db).rebuild(RebuildOptions(settle_seconds=0.0, grace_seconds=0.0))
            with db.update(new, job_id="j0") as job:
                job.prio = 9
            former.delete(old, job_id="j1")
            running.catch_up()
        return read(db)


def in_any_order(result: Any) -> str:
    return repr(result if not isinstance(result, list) else sorted(map(repr, map(loose, result))))


def loose(row: dict[str, Any]) -> Any:
    return sorted(
        (name, sorted(map(repr, each)) if isinstance(each, list) else repr(each))
        for name, each in row.items()
    )


@pytest.mark.usefixtures("attentive")
@pytest.mark.parametrize(
    ("name", "rebuild"),
    [*((name, False) for name in VIEWS), *((name, True) for name in ("where", "maximum"))],
)
@pytest.mark.parametrize(("old", "new"), [(Old, Short), (OldLong, Long)], ids=["short", "large"])
def test_items_without_an_attribute_count_with_its_default(
    name: str, old: Any, new: Any, rebuild: bool
) -> None:
    found = shown(name, old=old, new=new, rebuild=rebuild)
    assert found
    assert in_any_order(found) == in_any_order(shown(name, old=new, new=new, rebuild=rebuild))
