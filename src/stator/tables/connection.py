"""``connect`` and ``connect_async``: from a design and an address to a ``Db`` or an ``AsyncDb``."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, Unpack, cast

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
from stator.design.plan.lock_file import read_lock
from stator.design.plan.plan import Plan
from stator.design.table_settings import TableSettings
from stator.engine import Engine
from stator.errors import ConfigurationError
from stator.model.seconds import is_seconds
from stator.tables.async_runner import AsyncRunner
from stator.tables.blobs.stores import BlobStore, open_store
from stator.tables.context import Context
from stator.tables.db import AsyncDb, Db
from stator.tables.lifecycle import TableSetup
from stator.tables.observers import Meter, Observer
from stator.tables.runner import Runner
from stator.tables.schema.schema import Schema
from stator.transport import Transport

_F = TypeVar("_F", bound=Callable[..., Any])


class ConnectOptions(TransportOptions, total=False):
    """Options of the tables and of the data layer:

    plan                        a Plan, or the path of a lock file; by default the design's plan,
                                which starts from the lock file next to the design, if there is one
    prefix                      text before every table's name; by default none
    cursor_key                  bytes that sign cursors, so that clients cannot make their own
    measure                     True: ask for the consumed capacity and sum it in ``db.meter``
    observers                   functions that receive a CallRecord of every call
    threads                     calls a ``Db`` has in flight at once; by default 16
    deadline_seconds            a limit for each call, its retries included; by default none
    blobs                       the place of ``large()`` values: a folder, ``s3://bucket/prefix``,
                                or a BlobStore
    clock, random               a clock and a random.Random for tests

    Options of the embedded engine:

    durability                  "disk" (the default) waits until a write is on disk; "process"
                                does not
    region                      the region its tables are in

    Options of an ``http(s)://`` or ``aws://`` address:

    region                      by default the address's, then the one boto3 would use
    profile                     a profile of the AWS configuration
    access_key_id, secret_access_key, session_token
                                credentials; by default they are found where boto3 finds them
    connect_timeout_seconds, read_timeout_seconds
                                limits for one attempt
    max_attempts, max_backoff_seconds
                                limits for the retries of a call
    max_connections             connections to the endpoint
    ca_bundle                   a file of certificates, or False to check none
    proxy                       a URL; by default HTTPS_PROXY and NO_PROXY apply
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


_OWN_OPTIONS = tuple(
    name for name in ConnectOptions.__annotations__ if name not in TransportOptions.__annotations__
)
_TRANSPORT_OPTIONS = tuple(TransportOptions.__annotations__)
_OPTIONS = {
    **{name: ConnectOptions.__annotations__[name] for name in _OWN_OPTIONS},
    **TransportOptions.__annotations__,
}


class _Unset:
    """The value shown for an option whose default depends on the address."""

    def __repr__(self) -> str:
        return "..."


_DEFAULTS: dict[str, Any] = {
    "plan": None,
    "prefix": "",
    "cursor_key": None,
    "measure": False,
    "observers": (),
    "threads": 16,
    "deadline_seconds": None,
    "blobs": None,
    "durability": "disk",
}


def _with_options(function: _F) -> _F:
    """Add every connection option to a function's signature and docstring, for ``help()``.

    Without this, ``help()`` would show only ``**options``. Type checkers read the options from
    ``Unpack[ConnectOptions]``.
    """
    signature = inspect.signature(function)
    required = list(signature.parameters.values())[:-1]
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS.get(name, _Unset()),
            annotation=getattr(annotation, "__forward_arg__", annotation),
        )
        for name, annotation in _OPTIONS.items()
    ]
    described: Any = function
    described.__signature__ = signature.replace(parameters=[*required, *options])
    described.__doc__ = (
        f"{inspect.cleandoc(function.__doc__ or '')}\n\n"
        f"{inspect.cleandoc(ConnectOptions.__doc__ or '')}"
    )
    return function


@_with_options
def connect(
    design: Design, address: str | Engine | None = None, **options: Unpack[ConnectOptions]
) -> Db:
    """Open a design's tables at an address and return a ``Db``.

    The address is "memory" (the default), a folder, ``http(s)://host:port`` or ``aws://region``, or
    an Engine. On the embedded engine the tables are created at once; elsewhere ``db.ensure()``
    creates them.
    """
    where, context = Address.parse(address), make_context(design, options)
    transport = open_transport(where, options.get("clock"), _for_transport(options))
    meter, observers = _observers(options)
    runner = Runner(
        transport,
        context.clock,
        observers=observers,
        threads=options.get("threads", _DEFAULTS["threads"]),
        deadline_seconds=options.get("deadline_seconds"),
    )
    if where.is_embedded:
        context.is_embedded = True
        _create_tables(context, transport)
    return Db(context, runner, meter)


@_with_options
def connect_async(
    design: Design, address: str | Engine | None = None, **options: Unpack[ConnectOptions]
) -> AsyncDb:
    """Open a design's tables at an address and return an ``AsyncDb``.

    It may be called before an event loop runs: connections open when they are first needed. The
    address is "memory" (the default), a folder, ``http(s)://host:port`` or ``aws://region``, or an
    Engine. On the embedded engine the tables are created at once; elsewhere ``await db.ensure()``
    creates them.
    """
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
        context.is_embedded = True
        _create_tables(
            context,
            EngineTransport(transport.engine, owned=transport.owned, region=transport.region),
        )
    return AsyncDb(context, runner, meter)


def _for_transport(options: ConnectOptions) -> TransportOptions:
    return cast(
        "TransportOptions",
        {name: value for name, value in options.items() if name in _TRANSPORT_OPTIONS},
    )


def _create_tables(context: Context, transport: Transport) -> None:
    try:
        Runner(transport, context.clock).run(TableSetup(context, TableSettings()).run())
    except BaseException:
        transport.close()
        raise


def make_context(design: Design, options: ConnectOptions) -> Context:
    """Return the context of a connection. Raises ConfigurationError for an unknown option."""
    unknown = sorted(options.keys() - _OPTIONS.keys())
    if unknown:
        raise ConfigurationError(
            f"connect() has no option {unknown[0]!r}",
            hint=f"its options are {', '.join(_OPTIONS)}; see help(stator.connect)",
        )
    given: Any = design
    if not isinstance(given, Design):
        shown = given.__name__ if isinstance(given, type) else type(given).__name__
        raise ConfigurationError(
            f"connect() takes a Design, not {shown}",
            hint='write Design("shop", [Order], [orders_of_user])',
        )
    _check_own(options)
    schema = Schema(design, _plan(design, options.get("plan")), options.get("prefix", ""))
    return Context(
        schema,
        options.get("clock") or SystemClock(),
        options.get("random") or random.SystemRandom(),
        options.get("cursor_key"),
        open_store(options.get("blobs")),
    )


def _plan(design: Design, plan: Plan | str | Path | None) -> Plan:
    if plan is None:
        return design.plan()
    found = plan if isinstance(plan, Plan) else read_lock(Path(plan))
    if found is None:
        raise ConfigurationError(
            f"plan={str(plan)!r}: there is no such file",
            hint="write it with `stator plan --write`, or leave plan out to plan the design",
        )
    if found.name != design.name:
        raise ConfigurationError(
            f"plan= is a plan of the design {found.name}, not of {design.name}",
            hint="pass the plan or lock file of this design",
        )
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "plan": (lambda given: given is None or isinstance(given, (Plan, str, Path)),
             "a Plan, or the path of a lock file"),
    "prefix": (lambda given: isinstance(given, str), "text"),
    "cursor_key": (lambda given: given is None or (isinstance(given, bytes) and given != b""),
                   "bytes, and not none of them: without a key, cursors are not signed"),
    "measure": (lambda given: isinstance(given, bool), "True or False"),
    "observers": (lambda given: isinstance(given, Sequence) and all(map(callable, given)),
                  "a list of functions"),
    "threads": (lambda given: type(given) is int and given >= 1, "a whole number of 1 or more"),
    "deadline_seconds": (lambda given: given is None or is_seconds(given),
                         "a number of seconds above 0 and up to a hundred years, or None"),
}  # fmt: skip
"""The valid values of each option of the data layer: as a test, and in words for the error."""


def _check_own(options: ConnectOptions) -> None:
    """Raise ConfigurationError for an option of the wrong type or outside its range."""
    for name, (fits, wanted) in _RULES.items():
        if name not in options:
            continue
        given = cast("dict[str, Any]", options)[name]
        if not fits(given):
            shown = given if _is_number(given) else f"a {type(given).__name__}"
            raise ConfigurationError(
                f"connect(): {name} is {shown}", hint=f"pass {wanted}; see help(stator.connect)"
            )


def _observers(options: ConnectOptions) -> tuple[Meter | None, tuple[Observer, ...]]:
    meter = Meter() if options.get("measure") else None
    return meter, (*options.get("observers", ()), *((meter,) if meter is not None else ()))
