"""``connect`` and ``connect_async``: from a design and an address to a ``Db``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack, cast

from stator.addresses import (
    Address,
    AsyncEngineTransport,
    EngineTransport,
    TransportOptions,
    open_async_transport,
    open_transport,
)
from stator.clock import Clock, SystemClock
from stator.design.design import Design
from stator.design.plan.plan import Plan
from stator.engine import Engine
from stator.errors import ConfigurationError
from stator.tables.async_runner import AsyncRunner
from stator.tables.blobs.stores import BlobStore, open_store
from stator.tables.context import Context
from stator.tables.db import AsyncDb, Db
from stator.tables.lifecycle import TableSettings, TableSetup
from stator.tables.observers import Meter, Observer
from stator.tables.runner import Runner
from stator.tables.schema import Schema
from stator.transport import Transport


class ConnectOptions(TransportOptions, total=False):
    """``plan`` is a plan or the path of a lock file, instead of planning the design anew. ``prefix`` stands before every table's name.

    ``cursor_key`` signs cursors. ``measure`` asks DynamoDB for the capacity each call consumes, and sums it in ``db.meter``;
    ``observers`` get a record of every call. ``threads`` is how many calls a sync ``Db`` has under way at once. ``deadline_seconds``
    is for each call. ``blobs`` is where ``large()`` values go: a folder, ``s3://bucket/prefix``, or a store. ``clock`` and ``random`` are for tests.
    """

    plan: Plan | str | Path | None
    prefix: str
    cursor_key: bytes | None
    measure: bool
    observers: Sequence[Observer]
    threads: int
    deadline_seconds: float | None
    blobs: BlobStore | str | Path | None
    clock: Clock
    random: random.Random


def connect(
    design: Design, address: str | Engine | None = None, **options: Unpack[ConnectOptions]
) -> Db:
    """The design's tables at an address: memory, a folder, ``http(s)://...``, or ``aws://region``.

    On the embedded engine the tables are made at once; elsewhere ``db.ensure()`` makes them.
    """
    where, context = Address.parse(address), make_context(design, options)
    transport = open_transport(where, options.get("clock"), _for_transport(options))
    meter, observers = _observers(options)
    runner = Runner(
        transport,
        context.clock,
        observers=observers,
        threads=options.get("threads", 16),
        deadline_seconds=options.get("deadline_seconds"),
    )
    if where.is_embedded:
        _make_tables(context, transport)
    return Db(context, runner, meter)


def connect_async(
    design: Design, address: str | Engine | None = None, **options: Unpack[ConnectOptions]
) -> AsyncDb:
    """The same for asyncio. It may be called before there is a loop; connections are made when they are needed."""
    where, context = Address.parse(address), make_context(design, options)
    transport = open_async_transport(where, options.get("clock"), _for_transport(options))
    meter, observers = _observers(options)
    runner = AsyncRunner(
        transport,
        context.clock,
        observers=observers,
        deadline_seconds=options.get("deadline_seconds"),
    )
    if isinstance(transport, AsyncEngineTransport):
        _make_tables(
            context,
            EngineTransport(transport.engine, owned=transport.owned, region=transport.region),
        )
    return AsyncDb(context, runner, meter)


def _for_transport(options: ConnectOptions) -> TransportOptions:
    return cast(
        "TransportOptions",
        {name: value for name, value in options.items() if name in _TRANSPORT_OPTIONS},
    )


_TRANSPORT_OPTIONS = TransportOptions.__annotations__.keys()


def _make_tables(context: Context, transport: Transport) -> None:
    try:
        Runner(transport, context.clock).run(TableSetup(context, TableSettings()).run())
    except BaseException:
        transport.close()
        raise


def make_context(design: Design, options: ConnectOptions) -> Context:
    unknown = sorted(options.keys() - ConnectOptions.__annotations__.keys() - _TRANSPORT_OPTIONS)
    if unknown:
        raise ConfigurationError(
            f"connect() has no option {unknown[0]!r}", hint="see help(stator.connect)"
        )
    schema = Schema(design, _plan(design, options.get("plan")), options.get("prefix", ""))
    chance = options.get("random") or random.SystemRandom()
    clock = options.get("clock") or SystemClock()
    return Context(
        schema, clock, chance, options.get("cursor_key"), open_store(options.get("blobs"))
    )


def _plan(design: Design, given: Plan | str | Path | None) -> Plan:
    if given is None:
        return design.plan()
    return given if isinstance(given, Plan) else Plan.from_json(Path(given).read_text())


def _observers(options: ConnectOptions) -> tuple[Meter | None, tuple[Observer, ...]]:
    meter = Meter() if options.get("measure") else None
    return meter, (*options.get("observers", ()), *((meter,) if meter is not None else ()))
