"""``View``: an aggregate of an entity's items, by group and by stretch of time, kept up to date by a stream app.

hours = View(
    "isp_hours", of=Test, by=[Test.isp], bucket=(Test.at, "hour"), where=Test.ok == True,
    tests=count(), latency=avg(Test.latency_ms), spread=percentiles(Test.latency_ms), slowest=top(10, by=Test.latency_ms),
)
app.add(hours)
hours.on(db).get(isp="acme", at=moment).tests
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from stator.errors import DesignError
from stator.model.periods import Period, check_period
from stator.pipeline.views.metrics import Additive, Metric, Ordered, field_of
from stator.pipeline.views.reader import ViewReader, check_groupable
from stator.pipeline.views.sources import ViewDeclaration
from stator.pipeline.views.updater import ViewUpdater, as_fields
from stator.tables.operation import D


class View(ViewUpdater):
    def __init__(
        self,
        name: str,
        /,
        *,
        of: type[Any],
        by: Sequence[Any] | Any = (),
        bucket: tuple[Any, Period] | None = None,
        where: Any = None,
        keep: timedelta | None = None,
        **metrics: Metric,
    ) -> None:
        """``by`` are the fields that make a group, ``bucket`` a field of datetime and minute, hour, day, month or year; items for which ``where`` does not
        hold, or that have None in one of those fields, are not counted. A bucket is kept for ``keep`` after its end, for ever without."""
        fields = tuple(field_of(each, "by") for each in as_fields(by))
        check_groupable(fields)
        time = None
        if bucket is not None:
            check_period(bucket[1], "the period of a bucket")
            time = (field_of(bucket[0], "bucket"), bucket[1])
        if keep is not None and time is None:
            raise DesignError(
                "keep= is for buckets of time", hint="declare bucket=(field, 'hour'), too"
            )
        _check_metrics(
            metrics, [*(each.name for each in fields), *([] if time is None else [time[0].name])]
        )
        super().__init__(
            name, ViewDeclaration(of, fields, time, where, keep, metrics), has_sums=True
        )

    def on(self, db: D) -> ViewReader[D]:
        """The view as it is in a database, to be read; with an AsyncDb, every call is awaited."""
        return ViewReader(db, self.kept(db.context))


def _check_metrics(metrics: dict[str, Metric], names: list[str]) -> None:
    if not metrics:
        raise DesignError(
            "a view without metrics tells nothing", hint="give it some, such as orders=count()"
        )
    for name, metric in metrics.items():
        if not isinstance(metric, (Additive, Ordered)):
            raise DesignError(
                f"{name}={metric!r} is no metric", hint="count(), sum_of(...), avg(...), top(...)"
            )
        if name in names or name.startswith("_"):
            raise DesignError(
                f"{name} is taken: it tells the group", hint="call the metric something else"
            )
