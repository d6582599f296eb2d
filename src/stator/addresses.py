"""The composition root: opens the transport that an address stands for.

memory, or no address     the embedded engine, in memory
shop.db, ./data           the embedded engine, in a folder
http://localhost:8000     any DynamoDB endpoint
aws://eu-west-1           AWS, with credentials as boto3 finds them
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

import orjson

from stator.client.retry import Attempts, RetryPolicy, SharedRetries
from stator.clock import Clock, pause
from stator.engine import Engine
from stator.engine.engine import Durability, request_body
from stator.errors import ConfigurationError, SlowDown, StorageClosed, from_wire
from stator.model.scope import DEFAULT_ACCOUNT, DEFAULT_REGION, Scope
from stator.transport import AsyncTransport, CallOptions, Transport

if TYPE_CHECKING:
    from stator.client.factory import Kind

# A server whose scheme was forgotten would become a folder of that name.
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}/?")


class EngineTransport:
    """The embedded engine, called in-process. An ``owned`` engine is closed with the transport.

    An engine that enforces throughput throttles as AWS does. This transport then retries and slows
    down as the HTTP client does; the waits pass on the engine's clock.
    """

    parallel = False

    def __init__(
        self,
        engine: Engine,
        *,
        owned: bool = True,
        region: str = DEFAULT_REGION,
        max_attempts: int | None = None,
    ) -> None:
        self.engine = engine
        self._owned = owned
        self._region = region
        self._retries = _retries(max_attempts)

    @property
    def address(self) -> str:
        return self.engine.storage.location

    def call(
        self, operation: str, request: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> dict[str, Any]:
        if not self.engine.enforces_throughput:
            return self.engine.call(operation, dict(request), region=self._region)
        clock = self.engine.clock
        attempts = _attempts(self._retries, operation, request, options, clock)
        if wait := attempts.before(clock.now()):
            clock.sleep(wait)
        while True:
            try:
                reply = self.engine.call(operation, dict(request), region=self._region)
            except SlowDown as error:
                clock.sleep(attempts.after(error, clock.now()))
            else:
                attempts.succeeded(clock.now())
                return reply

    def close(self) -> None:
        if self._owned:
            self.engine.close()


class AsyncEngineTransport:
    """The embedded engine for asyncio.

    The engine runs a call directly on the event loop, without a thread. A write then awaits its
    fsync, so other tasks run meanwhile.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        owned: bool = True,
        region: str = DEFAULT_REGION,
        max_attempts: int | None = None,
    ) -> None:
        self.engine = engine
        self.owned = owned
        self.region = region
        self._scope = Scope(DEFAULT_ACCOUNT, region)
        self._retries = _retries(max_attempts)

    @property
    def address(self) -> str:
        return self.engine.storage.location

    async def call(
        self, operation: str, request: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> dict[str, Any]:
        if not self.engine.enforces_throughput:
            return await self._once(operation, request)
        clock = self.engine.clock
        attempts = _attempts(self._retries, operation, request, options, clock)
        if wait := attempts.before(clock.now()):
            await pause(clock, wait)
        while True:
            try:
                reply = await self._once(operation, request)
            except SlowDown as error:
                await pause(clock, attempts.after(error, clock.now()))
            else:
                attempts.succeeded(clock.now())
                return reply

    async def _once(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if self.engine.is_closed:
            raise StorageClosed
        reply = self.engine.submit(operation, request_body(request), self._scope)
        if reply.commit is not None:
            await self._durable(reply.commit)
        body: dict[str, Any] = orjson.loads(reply.body or b"{}")
        if reply.status != 200:
            raise from_wire(reply.status, body)
        return body

    async def _durable(self, commit: int) -> None:
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()

        def settle(error: BaseException | None) -> None:
            if written.done():
                return
            if error is None:
                written.set_result(None)
            else:
                written.set_exception(error)

        def from_any_thread(error: BaseException | None) -> None:
            loop.call_soon_threadsafe(settle, error)

        self.engine.when_durable(commit, from_any_thread)
        await written

    async def close(self) -> None:
        if self.owned:
            self.engine.close()


def _retries(max_attempts: int | None) -> SharedRetries:
    policy = RetryPolicy() if max_attempts is None else RetryPolicy(max_attempts)
    return SharedRetries(policy, random.random)


def _attempts(
    retries: SharedRetries,
    operation: str,
    request: Mapping[str, Any],
    options: CallOptions,
    clock: Clock,
) -> Attempts:
    seconds = options.get("deadline_seconds")
    return Attempts(
        retries,
        operation,
        request,
        idempotent=options.get("idempotent", True),
        deadline=None if seconds is None else clock.now() + seconds,
        raise_hot_key=options.get("raise_hot_key", False),
        raise_hot_index=options.get("raise_hot_index", False),
        raise_table_limit=options.get("raise_table_limit", False),
        on_retry=options.get("on_retry"),
    )


class TransportOptions(TypedDict, total=False):
    """How a connection is opened.

    The embedded engine takes only ``durability``, ``region`` and ``max_attempts``.

    ``durability``: "disk" (fsync before a write is acknowledged) or "process" (no fsync: writes
    survive a crash of the process, but not of the machine).
    ``region``: the region; by default the one in the address, then boto3's.
    ``profile``: the AWS profile for credentials; by default boto3's credential chain.
    ``access_key_id``, ``secret_access_key``, ``session_token``: credentials given directly.
    ``connect_timeout_seconds``, ``read_timeout_seconds``: timeouts of one attempt.
    ``max_attempts``, ``max_backoff_seconds``: limits of the retries of a call.
    ``max_connections``: how many connections to the endpoint may be open at once.
    ``ca_bundle``: a file of trusted certificates, or False to check none.
    ``proxy``: the URL of an HTTP proxy; by default HTTPS_PROXY and NO_PROXY apply.
    """

    durability: Durability
    region: str
    profile: str
    access_key_id: str
    secret_access_key: str
    session_token: str
    connect_timeout_seconds: float
    read_timeout_seconds: float
    max_attempts: int
    max_backoff_seconds: float
    max_connections: int
    ca_bundle: str | bool
    proxy: str | None


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. Depending on ``kind``, ``where`` is a folder, a URL or a region."""

    kind: Literal["memory", "folder", "http", "aws", "engine"]
    where: str = ""
    engine: Engine | None = None

    @classmethod
    def parse(cls, given: str | os.PathLike[str] | Engine | None) -> Address:
        if isinstance(given, str) and not given.strip():
            raise ConfigurationError(
                "the address is an empty text",
                hint='for the embedded engine in memory, write connect(design, "memory")',
            )
        if given is None or given in ("memory", "memory:", ":memory:"):
            return cls("memory")
        if isinstance(given, Engine):
            return cls("engine", engine=given)
        if not isinstance(given, (str, os.PathLike)):
            raise ConfigurationError(
                f"an address must be a str, a path or an Engine, not {type(given).__name__}",
                hint="use memory, a folder, http://host:port, https://... or aws://region",
            )
        text = os.fspath(given)
        scheme, separator, rest = text.partition("://")
        if not separator:
            if _HOST_AND_PORT.fullmatch(text):
                raise ConfigurationError(
                    f"the address {text!r} has no scheme",
                    hint=f"write http://{text} for a server, or ./{text} for a folder",
                )
            return cls("folder", text)
        if scheme in ("http", "https"):
            return cls("http", text)
        if scheme == "aws":
            return cls("aws", rest.strip("/"))
        if scheme == "file":
            return cls("folder", rest)
        raise ConfigurationError(
            f"{text!r} is not a supported address",
            hint="use memory, a folder, http://host:port, https://... or aws://region",
        )

    @property
    def is_new_folder(self) -> bool:
        """Whether this is a folder that is missing or empty. Opening it creates a store in it."""
        return self.kind == "folder" and not (
            os.path.exists(self.where) and (os.path.isfile(self.where) or os.listdir(self.where))
        )

    @property
    def is_embedded(self) -> bool:
        return self.kind in ("memory", "folder", "engine")


def open_transport(address: Address, clock: Clock | None, options: TransportOptions) -> Transport:
    if address.is_embedded:
        engine, owned = _engine(address, clock, options)
        return EngineTransport(
            engine,
            owned=owned,
            region=options.get("region", DEFAULT_REGION),
            max_attempts=options.get("max_attempts"),
        )
    # Imported late: the embedded engine does not need botocore.
    from stator.client.factory import open_client

    return open_client(cast("Kind", address.kind), address.where, clock, dict(options))


def open_async_transport(
    address: Address, clock: Clock | None, options: TransportOptions
) -> AsyncTransport:
    if address.is_embedded:
        engine, owned = _engine(address, clock, options)
        return AsyncEngineTransport(
            engine,
            owned=owned,
            region=options.get("region", DEFAULT_REGION),
            max_attempts=options.get("max_attempts"),
        )
    from stator.client.factory import open_async_client

    return open_async_client(cast("Kind", address.kind), address.where, clock, dict(options))


_EMBEDDED_OPTIONS = frozenset({"durability", "region", "max_attempts"})


def _engine(
    address: Address, clock: Clock | None, options: TransportOptions
) -> tuple[Engine, bool]:
    unknown = sorted(options.keys() - _EMBEDDED_OPTIONS)
    if unknown:
        raise ConfigurationError(
            f"the embedded engine has no option {unknown[0]}",
            hint="leave it out, or connect to an http(s):// or aws:// address",
        )
    if address.engine is not None:
        return address.engine, False
    path = address.where if address.kind == "folder" else None
    return Engine.open(path, clock=clock, durability=options.get("durability", "disk")), True
