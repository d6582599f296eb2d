"""The subscriber behind a view: receives changes and updates the view's items."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import DecimalException
from typing import Any

from stator.errors import ConfigurationError, DesignError, ImageNotShown
from stator.pipeline.views.generations import GenerationHeads
from stator.pipeline.views.layout import ViewLayout
from stator.pipeline.views.named_partials import NamedPartials
from stator.pipeline.views.partials import MeasuredChange, Partials
from stator.pipeline.views.ranks import Ranks
from stator.pipeline.views.rebuild.compaction import Compaction
from stator.pipeline.views.sources import ViewDeclaration, ViewSource
from stator.pipeline.workers.handlers.change import Record, key_mark
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.context import Context
from stator.tables.work import Work

_REMEMBERED_SCOPES = 1000


class MaintainedView:
    """A view in one database, with the objects that read and write its items."""

    def __init__(
        self, name: str, declared: ViewDeclaration, context: Context, *, has_sums: bool
    ) -> None:
        self.context = context
        self.source = ViewSource(declared, context.schema.of(declared.entity))
        self.layout = ViewLayout(context.schema.place, name)
        self.heads = GenerationHeads(self.layout)
        self.partials = Partials(context, self.layout, self.source)
        self.named = NamedPartials(context, self.layout, self.partials)
        self.ranks = Ranks(context, self.layout, self.source.end)
        self.compaction = Compaction(context, self.layout)
        self.has_sums = has_sums
        self._generations: dict[tuple[str, int], tuple[int, ...]] = {}

    def attend(self, scope: HandlerScope, position: str) -> Work[None]:
        head = yield from self.heads.attend(scope, position)
        if len(self._generations) > _REMEMBERED_SCOPES:
            self._generations.pop(next(iter(self._generations)))
        self._generations[scope.shard, scope.fence] = head.written
        yield from self.compaction.some(scope.group, self.partials.fresh, head.generation)

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        generations = self._generations.get((scope.shard, scope.fence))
        if generations is None:
            generations = (yield from self.heads.begun(scope.group)).written
        measured, failures = self.measured(records)
        shard = scope.shard
        if scope.is_retry:
            shard = f"~{key_mark(records[0].table, records[0].key)}"
        for generation in generations:
            # Rows first: a change whose rows are refused must not be in the sums either, because
            # the whole change is delivered again.
            if self.source.orders:
                refused = yield from self.ranks.apply(
                    generation, scope.stream, measured, scope.check
                )
                failures += [
                    HandlerFailure(each.record, error)
                    for each, error in refused
                    if each.record is not None
                ]
                without = {id(each.record) for each, _ in refused}
                measured = [each for each in measured if id(each.record) not in without]
            if self.has_sums and scope.is_lambda:
                yield from self.named.apply(generation, scope.stream, measured, scope.check)
            elif self.has_sums:
                yield from self.partials.apply(generation, shard, measured, scope.check)
        return failures

    def measured(
        self, records: Sequence[Record]
    ) -> tuple[list[MeasuredChange], list[HandlerFailure]]:
        now = self.context.now()
        found, failures = [], []
        for record in records:
            try:
                found.append(self._measured(record, now))
            # The image does not decode, or a field is not a number that can be added.
            except (DesignError, DecimalException) as error:
                failures.append(HandlerFailure(record, error))
        return found, failures

    def _measured(self, record: Record, now: float) -> MeasuredChange:
        if (record.kind != "INSERT" and record.old is None) or (
            record.kind != "REMOVE" and record.new is None
        ):
            raise ImageNotShown("NEW_AND_OLD_IMAGES")
        # Only rows need the mark.
        mark = key_mark(record.table, record.key) if self.source.orders else ""
        return MeasuredChange(
            record,
            mark,
            self.source.counted(record.old, mark, now),
            self.source.counted(record.new, mark, now),
        )

    def wants(self, record: Record) -> bool:
        of = self.source.of
        if record.table != of.table.name:
            return False
        discriminator = of.plan.discriminator
        if discriminator is None:
            test = of.told_by_key
            return (
                test is None
                or any(image is not None and test(image) for image in (record.new, record.old))
                or (record.new is None and record.old is None)
            )
        wanted = {"S": of.name}
        return any(
            image is not None and image.get(discriminator) == wanted
            for image in (record.new, record.old)
        ) or (record.new is None and record.old is None)


class ViewUpdater:
    """The base of ``View`` and ``Projection``: the subscriber that updates them.

    Each change counts once.
    """

    is_exact = True

    def __init__(self, name: str, declared: ViewDeclaration, *, has_sums: bool) -> None:
        if not name or not name.replace("_", "a").replace("-", "a").isalnum():
            raise DesignError(
                f"{name!r} cannot name a view",
                hint="use letters, digits, - and _, such as isp_hours",
            )
        self._name = name
        self._declared = declared
        self._has_sums = has_sums
        self._views: list[MaintainedView] = []

    @property
    def name(self) -> str:
        """The name under which the view's items are stored."""
        return self._name

    def in_database(self, context: Context) -> MaintainedView:
        """Return the view in one database. The last few databases are cached."""
        for each in self._views:
            if each.context is context:
                return each
        view = MaintainedView(self._name, self._declared, context, has_sums=self._has_sums)
        self._views = [*self._views[-7:], view]
        return view

    def prepare(self, context: Context) -> None:
        """Raise an error if the view does not fit the database's design.

        Workers call this when they start.
        """
        self.in_database(context)

    def tables(self, context: Context) -> Sequence[str]:
        """Return the table of the view's entity."""
        return (self.in_database(context).source.of.table.name,)

    def wants(self, record: Record, context: Context) -> bool:
        """Return whether a change is about an item that the view may count."""
        return self.in_database(context).wants(record)

    def attend(self, scope: HandlerScope, position: str) -> Work[None]:
        """Do the periodic work: notice a rebuild of the view, and merge old partials."""
        return self.in_database(scope.context).attend(scope, position)

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        """Add a batch of changes to the view's items, each once. Workers call this.

        Returns one failure for each change that could not be counted.
        """
        if not scope.shard and not scope.is_lambda:
            raise ConfigurationError(
                f"the view {self._name} got a change without its shard, and cannot count it",
                hint="run the app with `stator work`, or with app.lambda_handler(db) on AWS Lambda",
            )
        return self.in_database(scope.context).handle(records, scope)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name} of {self._declared.entity.__name__}>"


def as_fields(given: Sequence[Any] | Any) -> tuple[Any, ...]:
    """Return ``given`` as a tuple, whether it is one field or a list of them."""
    return tuple(given) if isinstance(given, (list, tuple)) else (given,)
