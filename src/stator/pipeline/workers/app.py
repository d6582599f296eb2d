"""``StreamApp``: handlers for the changes to a design's tables.

    app = StreamApp(shop, "billing")
    on = app.on

    @on.insert(Order)
    def invoice(change: Insert[Order]) -> None: ...

    @on.modify(Order, when_changed=Order.status)
    def notify(change: Modify[Order]) -> None: ...

The app's name is also the name of its worker group. The workers of a group share the work, and
every group gets every change. ``add`` registers views and sinks. ``roll_up``, ``refresh``,
``relay`` and ``release_guards`` register patterns that are maintained from the stream
(``pipeline.maintenance``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from stator.design.design import Design
from stator.design.entities.conditions import FieldRef
from stator.design.plan.own_table import guarded_fields
from stator.design.table_settings import STREAM_VIEWS, StreamView, TableSettings
from stator.errors import DesignError
from stator.pipeline.maintenance.guards import GuardReleaser
from stator.pipeline.maintenance.links import AnyLinks, LinkRefresher
from stator.pipeline.maintenance.outboxes import AnyOutbox, OutboxRelay, Receiver
from stator.pipeline.maintenance.rollups import AnySeries, RollupUpdater
from stator.pipeline.workers.aws_lambda import LambdaHandler, lambda_handler
from stator.pipeline.workers.handlers.change import Change, Insert, Modify, Remove
from stator.pipeline.workers.handlers.change_handlers import ChangeHandler, ChangeHandlers
from stator.pipeline.workers.handlers.subscribers import (
    ChangeFilter,
    EachBatch,
    EntitySubscriber,
    Subscriber,
    stream_views,
)
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.worker_threads import RunningWorker
from stator.tables.db import Db

E = TypeVar("E")
F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]


class StreamApp:
    """The handlers, views, sinks and relays that react to the changes of a design's tables.

        app = StreamApp(shop, "billing")

        @app.on.insert(Order)
        def send_invoice(change: Insert[Order]) -> None: ...

    Workers run it: ``stator work billing.py:app``, or ``app.start(db)`` in a program. ``name``
    stays the same from run to run, because progress is stored under it.
    """

    def __init__(self, design: Design, name: str, *, concurrency: int = 1) -> None:
        """Create an app. ``concurrency`` is how many items of a shard its functions handle at once.

        A number above 1 speeds up functions that wait for other services. They then run in several
        threads.
        """
        if not isinstance(design, Design):
            raise DesignError(
                f"an app needs a Design, not {design!r}",
                hint='pass the design first: StreamApp(shop, "billing")',
            )
        if not isinstance(name, str):
            raise DesignError(
                f"{name!r} cannot name a group of workers", hint="pass text, such as billing"
            )
        if type(concurrency) is not int or concurrency < 1:
            raise DesignError(
                f"app {name!r}: concurrency={concurrency!r} is not a number of 1 or more",
                hint="use 1, or a small number such as 8 for functions that wait",
            )
        if not name or "#" in name:
            raise DesignError(
                f"{name!r} cannot name a group of workers",
                hint="use a word without #, such as billing",
            )
        self.design = design
        self.name = name
        self.concurrency = concurrency
        self.subscribers: list[Subscriber] = []
        self.on = On(self)
        self._handlers = ChangeHandlers(concurrency)

    def add(self, subscriber: Subscriber) -> None:
        """Register a view, a sink, or a subscriber of your own.

        Raises DesignError if a sink's ``only=`` names an entity outside the design.
        """
        if isinstance(subscriber, type) or not isinstance(subscriber, Subscriber):
            raise DesignError(
                f"app {self.name!r} cannot add {subscriber!r}",
                hint="pass a View, a Projection, a sink, or a subscriber of your own",
            )
        if isinstance(subscriber, EntitySubscriber):
            self.entities_checked(subscriber.entities)
        self._refuse_name(subscriber.name)
        self.subscribers.append(subscriber)

    def add_handler(self, handler: ChangeHandler) -> None:
        """Register a function for single changes. All such functions form one subscriber."""
        self._refuse_name(handler.name)
        if not self._handlers.handlers:
            self.add(self._handlers)
        self._handlers.handlers.append(handler)

    def _refuse_name(self, name: str) -> None:
        names = {each.name for each in self.subscribers}
        if name in names | {each.name for each in self._handlers.handlers}:
            raise DesignError(
                f"{self.name} has two handlers named {name}",
                hint="parked changes are stored by handler name: rename one, or pass name=...",
            )

    # -- patterns

    def roll_up(
        self, series: AnySeries | Callable[[Any], AnySeries], *, name: str | None = None
    ) -> None:
        """Update the roll-ups of a Series that has ``rollups_from="stream"``.

        ``series`` is a Series, or a function that creates one from a Db. Each change to a reading
        counts once. ``name`` defaults to the name of the function.
        """
        self.add(RollupUpdater(series, name))

    def refresh(
        self, links: AnyLinks | Callable[[Any], AnyLinks], *, name: str | None = None
    ) -> None:
        """Keep Links up to date: refresh their copies when an entity changes.

        When an entity is deleted, its links are deleted. ``links`` is a Links, or a function that
        creates one from a Db. ``name`` defaults to the name of the function.
        """
        self.add(LinkRefresher(links, name))

    def relay(
        self,
        outbox: AnyOutbox | Callable[[Any], AnyOutbox],
        *,
        to: Receiver,
        name: str | None = None,
    ) -> None:
        """Deliver the messages of an Outbox when they are written.

        ``outbox`` is an Outbox, or a function that creates one from a Db. ``to`` receives the
        messages. It is a function, which may be async, or a ``Sink``, which gets JSON with id,
        topic, key, body and time.
        """
        self.add(OutboxRelay(outbox, to, name))

    def release_guards(self, *entities: type[Any]) -> None:
        """Delete the guards of items that expired, or that were deleted without the data layer.

        A guard is an item that reserves a ``unique()`` value. If the table's key contains more than
        the identity, a guard also reserves the identity. Without arguments, the app releases the
        guards of all entities that have any.
        """
        given = self.entities_checked(entities or self.design.entities)
        plan = self.design.plan()
        guarded = tuple(cls for cls in given if guarded_fields(cls, plan))
        without = next((cls for cls in entities if cls not in guarded), None)
        if not guarded or without is not None:
            shown = (
                f"no entity of {self.design.name} has guards"
                if without is None
                else f"{without.__name__} has no guards"
            )
            raise DesignError(
                f"{shown} to release",
                hint="leave out the entity, or the call: an entity has guards only if it has a "
                "unique() field, or if the table's key contains more than its identity",
            )
        self.add(GuardReleaser(guarded))

    # -- work

    def ensure(self, db: Db, settings: TableSettings | None = None) -> list[str]:
        """Create missing tables, and turn on their streams with the images that the handlers need.

        A stream that shows more than needed is left as it is. Returns a line of text for each thing
        that changed.
        """
        streams = stream_views(self.subscribers, db.context)
        declared = settings or db.context.schema.design.settings or TableSettings()
        return db.ensure(replace(declared, streams=streams))

    def start(self, db: Db, options: WorkerOptions | None = None) -> RunningWorker:
        """Start a worker in threads of this process, and return it.

        ``with app.start(db): ...`` stops the worker at the end of the block.
        """
        return RunningWorker(self, db, options)

    def lambda_handler(self, db: Db) -> LambdaHandler:
        """Return the handler of an AWS Lambda function for the tables' streams."""
        return lambda_handler(self, db)

    def entities_checked(self, given: Sequence[type[Any]]) -> tuple[type[Any], ...]:
        """Return the entities as a tuple. Raises DesignError if one is not in the design."""
        for entity in given:
            if entity not in self.design.entities:
                name = getattr(entity, "__name__", entity)
                raise DesignError(
                    f"{name} is not in the design {self.design.name}",
                    hint=f"it has {', '.join(cls.__name__ for cls in self.design.entities)}",
                )
        return tuple(given)


def _view(needs: StreamView) -> StreamView:
    if needs not in STREAM_VIEWS:
        raise DesignError(
            f"needs={needs!r} is not a view type of a stream",
            hint=f"use one of {', '.join(STREAM_VIEWS)}",
        )
    return needs


class On:
    """The decorators that register functions with an app: ``@app.on.insert(Order)``.

    Each returns the function unchanged. ``name`` defaults to the name of the function. ``needs`` is
    the smallest view type of the stream with which the function works. A function that uses only
    ``change.identity`` works with KEYS_ONLY.
    """

    def __init__(self, app: StreamApp) -> None:
        self._app = app

    def insert(
        self, entity: type[E], *, name: str | None = None, needs: StreamView = "NEW_IMAGE"
    ) -> Callable[[Callable[[Insert[E]], Any]], Callable[[Insert[E]], Any]]:
        """Register a function to be called for each new item."""
        return self._each(
            ChangeFilter(frozenset({"INSERT"}), self._app.entities_checked([entity])), name, needs
        )

    def modify(
        self,
        entity: type[E],
        *,
        when_changed: Any = None,
        name: str | None = None,
        needs: StreamView = "NEW_AND_OLD_IMAGES",
    ) -> Callable[[Callable[[Modify[E]], Any]], Callable[[Modify[E]], Any]]:
        """Register a function to be called for each update to an existing item.

        ``when_changed`` is one field or several. The function then gets only updates that changed
        at least one of these fields.
        """
        changed = _field_names(entity, when_changed)
        given = ChangeFilter(frozenset({"MODIFY"}), self._app.entities_checked([entity]), changed)
        return self._each(given, name, needs)

    def remove(
        self,
        entity: type[E],
        *,
        expired: bool | None = None,
        name: str | None = None,
        needs: StreamView = "OLD_IMAGE",
    ) -> Callable[[Callable[[Remove[E]], Any]], Callable[[Remove[E]], Any]]:
        """Register a function to be called for each deleted item.

        With ``expired=True``, the function gets only items that TTL deleted; with ``False``, only
        the others.
        """
        given = ChangeFilter(
            frozenset({"REMOVE"}), self._app.entities_checked([entity]), expired=expired
        )
        return self._each(given, name, needs)

    @overload
    def any(self, entity: Callable[[Change[Any]], None], /) -> Callable[[Change[Any]], None]: ...
    @overload
    def any(
        self,
        entity: type[E],
        /,
        *,
        name: str | None = None,
        needs: StreamView = "NEW_AND_OLD_IMAGES",
    ) -> Callable[[Callable[[Change[E]], Any]], Callable[[Change[E]], Any]]: ...
    def any(
        self,
        entity: Any,
        /,
        *,
        name: str | None = None,
        needs: StreamView = "NEW_AND_OLD_IMAGES",
    ) -> Any:
        """Register a function to be called for every change.

        With ``@on.any``, the function gets the changes to all items; with ``@on.any(Order)``, the
        changes to one entity.
        """
        if isinstance(entity, type):
            given = ChangeFilter(entities=self._app.entities_checked([entity]))
            return self._each(given, name, needs)
        return self._each(ChangeFilter(), name, needs)(entity)

    def batch(
        self,
        *entities: type[Any],
        name: str | None = None,
        needs: StreamView = "NEW_AND_OLD_IMAGES",
    ) -> Callable[[Callable[[list[Change[Any]]], Any]], Callable[[list[Change[Any]]], Any]]:
        """Register a function to be called with lists of changes.

        Without ``entities``, the function gets the changes to all entities. If it raises, it is
        called again with each half of the list.
        """
        given = ChangeFilter(entities=self._app.entities_checked(entities))

        def register(
            function: Callable[[list[Change[Any]]], Any],
        ) -> Callable[[list[Change[Any]]], Any]:
            self._app.add(EachBatch(name or function.__name__, function, given, _view(needs)))
            return function

        return register

    def _each(
        self, given: ChangeFilter, name: str | None, needs: StreamView
    ) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
        def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
            if not callable(function):
                raise DesignError(
                    f"{function!r} is not a function that can handle changes",
                    hint="write @app.on... above a function that takes one change",
                )
            self._app.add_handler(
                ChangeHandler(name or function.__name__, function, given, _view(needs))
            )
            return function

        return register


def _field_names(entity: type[Any], given: Any) -> frozenset[str]:
    if given is None:
        return frozenset()
    references = given if isinstance(given, (list, tuple, set, frozenset)) else [given]
    for reference in references:
        if not isinstance(reference, FieldRef) or not issubclass(entity, reference.owner):
            raise DesignError(
                f"when_changed={reference!r} is not a field of {entity.__name__}",
                hint=f"name a field, such as when_changed={entity.__name__}.status",
            )
    return frozenset(reference.name for reference in references)
