"""``Ingest``: how an app writes the records of topics into the tables of a design.

    app = Ingest(fleet, "tests")

    app.put(Reading, topic="readings")

    @app.fold(RouterTotal, topic="tests", event=Test, by=lambda test: {"router": test.router})
    def total(test: Test, total: RouterTotal) -> None:
        total.tests += 1
        total.megabits += test.megabits

    @app.on("payments")
    def pay(event: dict[str, Any], tx: Transaction) -> None:
        with tx.update(Account, account_id=event["account"]) as account:
            account.balance += event["amount"]

``stator ingest tests.py:app --kafka localhost:9092 --at http://localhost:8000`` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

from stator.design.design import Design
from stator.design.entities.conditions import FieldRef
from stator.errors import ConfigurationError, DesignError, ResourceNotFound
from stator.pipeline.ingest.dead_records import DeadRecords, DeadRecordTable
from stator.pipeline.ingest.explanation import IngestExplanation, explained
from stator.pipeline.ingest.intake import IngestProgress, Intake
from stator.pipeline.ingest.kafka_source import KafkaOptions
from stator.pipeline.ingest.options import IngestOptions
from stator.pipeline.ingest.routes.fold_route import FoldRoute
from stator.pipeline.ingest.routes.guards import HANDLER_GUARDS, PUT_GUARDS, HandlerGuard, PutGuard
from stator.pipeline.ingest.routes.handler_route import HandlerRoute
from stator.pipeline.ingest.routes.put_route import PutRoute
from stator.pipeline.ingest.routes.route import DeclaredRoute, RouteOptions
from stator.pipeline.ingest.running_ingest import RunningIngest
from stator.pipeline.ingest.source_record import SourceRecord
from stator.pipeline.ingest.values.decoders import Decoder, decoder_of, unknown_fields
from stator.tables.db import Db
from stator.tables.schema.schema import Schema
from stator.tables.writes.transactions import Transaction

F = TypeVar("F", bound=Callable[..., Any])
E = TypeVar("E")
Decode = Decoder | Callable[[SourceRecord], Any]
_BATCH_RECORDS: Final = 1000
_WAIT_SECONDS: Final = 0.05


class Ingest:
    """The routes by which the records of topics are written as entities of a design.

    ``name`` is the consumer group, unless a run names another. Progress is stored under it, so it
    stays the same from run to run.
    """

    def __init__(self, design: Design, name: str) -> None:
        if not isinstance(design, Design):
            raise DesignError(
                f"an ingest needs a Design, not {design!r}",
                hint='pass the design first: Ingest(fleet, "tests")',
            )
        if not isinstance(name, str) or not name or "#" in name:
            raise DesignError(
                f"{name!r} cannot name an ingest", hint="use a word without #, such as tests"
            )
        self.design = design
        self.name = name
        self._routes: list[DeclaredRoute] = []

    def declared(self) -> tuple[DeclaredRoute, ...]:
        """Return the routes in the order in which they were declared."""
        return tuple(self._routes)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of all routes, each once."""
        return tuple(dict.fromkeys(route.options.topic for route in self._routes))

    def put(
        self,
        entity: type[Any],
        *,
        topic: str,
        guard: PutGuard | None = None,
        version: Any = None,
        decode: Decode | None = None,
        event: type[Any] | None = None,
        convert: Callable[[Any], Any] | None = None,
        when: Callable[[Any], Any] | None = None,
        key: Callable[[SourceRecord], Mapping[str, Any]] | None = None,
        source: str | None = None,
        unknown: str = "drop",
    ) -> None:
        """Write each record as an entity, which replaces the one with its key.

        A record without a value deletes the entity with its key. ``key`` returns the identity that
        such a record names; by default the key is the identity's only field, as text.

        ``guard`` says which records are refused; the guide compares the guards. It is ``version``
        if ``version`` names a field, and ``position`` otherwise. Of records with ``version``, the
        newest wins, whatever the order.

        ``decode`` reads the bytes: by default they are JSON. The entity's fields are taken from the
        result. ``convert`` returns the entity instead, or None to leave a record out; ``event`` is
        the dataclass that it gets. ``when`` chooses records: it gets what ``convert`` would get, or
        the entity. ``unknown`` says whether fields that the class does not have are dropped, or
        refuse the record.

        ``source`` names the log in the items' guards; by default it is the topic. Give it a new
        name if a topic is deleted and created again, because its offsets start again.
        """
        self._check_entity(entity)
        if version is not None and (
            not isinstance(version, FieldRef)
            or len(version.path) != 1
            or not issubclass(entity, version.owner)
        ):
            raise DesignError(
                f"version={version!r} is not a field of {entity.__name__}",
                hint=f"name a field, such as version={entity.__name__}.at",
            )
        chosen = guard or ("position" if version is None else "version")
        if chosen not in PUT_GUARDS:
            raise DesignError(
                f"guard={guard!r} is not a guard of put", hint=f"use one of {', '.join(PUT_GUARDS)}"
            )
        if (chosen == "version") != (version is not None):
            raise DesignError(
                f"guard={chosen!r} and version={version!r} do not fit together",
                hint="pass version=Reading.at to guard by a field, and no version= otherwise",
            )
        if event is not None and convert is None:
            raise DesignError(
                "event= needs convert=: a put reads the entity's own fields otherwise",
                hint="pass convert=, a function from the event to the entity",
            )
        self._check_shared(entity, chosen)
        options = self._options(topic, decode, source, when, unknown)
        self._routes.append(PutRoute(entity, options, chosen, version, convert, event, key))

    def fold(
        self,
        entity: type[E],
        *,
        topic: str,
        by: Callable[[Any], Mapping[str, Any]],
        event: type[Any] | None = None,
        decode: Decode | None = None,
        when: Callable[[Any], Any] | None = None,
        source: str | None = None,
        unknown: str = "drop",
    ) -> Callable[[Callable[[Any, E], Any]], Callable[[Any, E], Any]]:
        """Register a function that adds an event to an entity: counters, sums, sets, last values.

        The function gets the event, and a recorder as in ``with db.update(...)``. ``by`` returns
        the identity of the entity that an event belongs to. Missing entities are created with the
        defaults of their fields. Each event counts once. The events of an entity that wait are
        written together. Records without a value are left out.

        ``event`` is a dataclass that the function gets; without it, it gets what ``decode``
        returns. The other arguments are those of ``put``.
        """
        self._check_entity(entity)
        self._check_shared(entity, "fold")
        options = self._options(topic, decode, source, when, unknown)

        def register(function: Callable[[Any, E], Any]) -> Callable[[Any, E], Any]:
            if any(
                isinstance(each, FoldRoute)
                and each.entity is entity
                and each.options.source == options.source
                for each in self._routes
            ):
                raise DesignError(
                    f"two folds of {topic} into {entity.__name__} would share their marks",
                    hint="make them one function, or give one of them another source=",
                )
            self._routes.append(FoldRoute(entity, options, function, by, event))
            return function

        return register

    def on(
        self,
        topic: str,
        *,
        guard: HandlerGuard = "transaction",
        event: type[Any] | None = None,
        decode: Decode | None = None,
        when: Callable[[Any], Any] | None = None,
        source: str | None = None,
        unknown: str = "drop",
    ) -> Callable[[Callable[[Any, Transaction], Any]], Callable[[Any, Transaction], Any]]:
        """Register a function that gets each event and a transaction.

        The transaction is sent when the function returns. With ``guard="transaction"``, it also
        moves the partition's position, so each event is applied once. With ``none``, an event that
        arrives again is applied again. The events of a partition are handled one after the other.
        Records without a value are left out. The other arguments are those of ``put`` and ``fold``.
        """
        if guard not in HANDLER_GUARDS:
            raise DesignError(
                f"guard={guard!r} is not a guard of a handler",
                hint=f"use one of {', '.join(HANDLER_GUARDS)}",
            )
        options = self._options(topic, decode, source, when, unknown)

        def register(
            function: Callable[[Any, Transaction], Any],
        ) -> Callable[[Any, Transaction], Any]:
            name = function.__name__
            if any(isinstance(each, HandlerRoute) and each.name == name for each in self._routes):
                raise DesignError(
                    f"ingest {self.name!r} has two handlers named {name}", hint="rename one"
                )
            if guard == "transaction" and any(
                isinstance(each, HandlerRoute)
                and each.guard == "transaction"
                and each.options.source == options.source
                for each in self._routes
            ):
                raise DesignError(
                    f"two handlers of {topic} would share one position",
                    hint="make them one handler, or give one of them another source=",
                )
            self._routes.append(HandlerRoute(function, options, guard, event))
            return function

        return register

    def explain(self) -> IngestExplanation:
        """Return what each route writes, its guard, and what a record costs by its outcome."""
        return explained(self.name, self._routes, Schema(self.design, self.design.plan()))

    # -- run

    def start(
        self,
        db: Db,
        kafka: KafkaOptions,
        options: IngestOptions | None = None,
        *,
        dead_letters: DeadRecords | None = None,
    ) -> RunningIngest:
        """Start reading in threads of this process. Returns at once.

        ``with app.start(db, KafkaOptions("localhost:9092")): ...`` stops it at the end of the
        block. Dead letters go to the design's own table, unless ``dead_letters`` is another place.
        """
        return RunningIngest(self, db, kafka, options, dead_letters)

    def write(
        self,
        db: Db,
        records: Iterable[SourceRecord],
        options: IngestOptions | None = None,
        *,
        dead_letters: DeadRecords | None = None,
    ) -> IngestProgress:
        """Write records that the caller passes, in this thread, and return their outcomes.

        For tests without Kafka, and for replays from files. The records of a partition must be in
        order. Records that were written before change nothing.
        """
        self.check(db)
        letters = dead_letters or DeadRecordTable(db, self.name)
        intake = Intake(
            self.name, self._routes, db.context, db.runner, letters, options or IngestOptions()
        )
        source = iter(records)
        while batch := list(islice(source, _BATCH_RECORDS)):
            intake.take_in(batch)
            while not intake.window.is_drained():
                intake.write_once(_WAIT_SECONDS)
        letters.flush()
        return intake.progress()

    def check(self, db: Db) -> None:
        """Check that the routes fit the design, and that the tables exist.

        Raises DesignError or ConfigurationError, which say what to do.
        """
        if not self._routes:
            raise DesignError(
                f"ingest {self.name!r} has no routes",
                hint="add some with app.put, app.fold or app.on",
            )
        for route in self._routes:
            route.bind(db.context, self.name)
        schema = db.context.schema
        for name in dict.fromkeys((*schema.tables, schema.place.table)):
            try:
                db.call("DescribeTable", {"TableName": name})
            except ResourceNotFound:
                raise ConfigurationError(
                    f"there is no table {name}",
                    hint="check the address, the prefix and, for an http address, the region"
                    " (AWS_DEFAULT_REGION); --ensure creates the tables",
                ) from None

    # -- checks

    def _options(
        self,
        topic: str,
        decode: Any,
        source: str | None,
        when: Callable[[Any], Any] | None,
        unknown: str,
    ) -> RouteOptions:
        if not isinstance(topic, str) or not topic:
            raise DesignError(f"topic={topic!r} is not a topic's name", hint="pass text")
        named = topic if source is None else source
        if not named or "#" in named:
            raise DesignError(f"source={source!r} cannot name a log", hint="use a word without #")
        return RouteOptions(topic, decoder_of(decode), named, when, unknown_fields(unknown))

    def _check_entity(self, entity: type[Any]) -> None:
        if entity not in self.design.entities:
            raise DesignError(
                f"{getattr(entity, '__name__', entity)} is not in the design {self.design.name}",
                hint=f"it has {', '.join(cls.__name__ for cls in self.design.entities)}",
            )

    def _check_shared(self, entity: type[Any], guard: str) -> None:
        """Refuse a second route to an entity if the two would undo each other's writes."""
        others = [
            route.guard if isinstance(route, PutRoute) else "fold"
            for route in self._routes
            if isinstance(route, (PutRoute, FoldRoute)) and route.entity is entity
        ]
        together = {"fold"} if guard == "fold" else {"version"} if guard == "version" else {"id"}
        if others and not {guard, *others} <= together:
            raise DesignError(
                f"{entity.__name__} has a route already, with guard {others[0]!r}",
                hint="several routes to one entity need version= in each, guard='id' in each, or"
                " must all be folds",
            )
