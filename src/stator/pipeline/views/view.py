"""``View``: an aggregate of an entity's items, by group and time bucket, updated by a stream app.

hours = View(
    "isp_hours", of=Test, by=[Test.isp], bucket=(Test.at, "hour"), where=Test.ok == True,
    tests=count(), latency=avg(Test.latency_ms), slowest=top(10, by=Test.latency_ms),
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
from stator.model.seconds import is_seconds
from stator.pipeline.views.metrics import Additive, Metric, Ordered, field_of
from stator.pipeline.views.reader import ViewReader, check_groupable
from stator.pipeline.views.sources import ViewDeclaration
from stator.pipeline.views.updater import ViewUpdater, as_fields
from stator.tables.argument_rules import checks_arguments
from stator.tables.operation import D, context_of


@checks_arguments("View")
class View(ViewUpdater):
    """A summary of items, kept up to date by workers: counts, sums, percentiles, top lists.

        orders_by_day = View(
            "orders_by_day",
            of=Order,
            by=Order.shop,
            bucket=(Order.placed_at, "day"),
            orders=count(),
            revenue=sum_of(Order.total),
        )

    ``app.add(orders_by_day)`` maintains it, and ``orders_by_day.on(db)`` reads it. Each keyword
    that is not an option of ``View`` declares a metric. Rows have an attribute of that name:
    ``row.revenue``.
    """

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
        """Declare a view.

        ``by`` are the fields of a group. ``bucket`` is a datetime field and a period: minute, hour,
        day, month or year. Items for which ``where`` does not hold, or that have None in a field of
        ``by`` or ``bucket``, are not counted. A bucket expires ``keep`` after its end; without
        ``keep``, it never expires.
        """
        fields = tuple(field_of(each, "by") for each in as_fields(by))
        check_groupable(fields)
        time = None
        if bucket is not None:
            check_period(bucket[1], "the period of a bucket")
            time = (field_of(bucket[0], "bucket"), bucket[1])
        if keep is not None and not is_seconds(keep.total_seconds()):
            raise DesignError(
                f"keep={keep} is out of range",
                hint="use more than 0 and at most a hundred years: keep=timedelta(days=90)",
            )
        if keep is not None and time is None:
            raise DesignError(
                "keep= needs time buckets", hint="add bucket=(field, 'hour'), or remove keep="
            )
        _check_metrics(
            metrics, [*(each.name for each in fields), *([] if time is None else [time[0].name])]
        )
        super().__init__(
            name, ViewDeclaration(of, fields, time, where, keep, metrics), has_sums=True
        )

    def on(self, db: D) -> ViewReader[D]:
        """Return a reader of the view in a database. With an AsyncDb, await every call."""
        context = context_of(db, "view.on()", "view.on(connect(shop))")
        return ViewReader(db, self.in_database(context))


def _check_metrics(metrics: dict[str, Metric], names: list[str]) -> None:
    if not metrics:
        raise DesignError("the view has no metrics", hint="add one, for example orders=count()")
    for name, metric in metrics.items():
        if not isinstance(metric, (Additive, Ordered)):
            raise DesignError(
                f"{name}={metric!r} is not a metric",
                hint="use a metric: count(), sum_of(...), avg(...), top(...) and so on",
            )
        if name in names or name.startswith("_"):
            raise DesignError(
                f"a metric cannot be named {name}: the name starts with _ or is a group field",
                hint="rename the metric",
            )
