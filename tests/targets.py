"""Every target of a ``Db``: the engine in memory, on disk and over HTTP, and DynamoDB Local.

Servers start once a session.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from stator.bulk import BulkTarget
from stator.design.design import Design
from stator.tables.connection import connect, connect_async
from stator.tables.db import AsyncDb, Db

if TYPE_CHECKING:
    from stator.addresses import TransportOptions

from .dynamodb_local import dynamodb_local

KINDS = ("memory", "disk", "http", "dynamodb-local")
Connect = Callable[..., Db]
ConnectAsync = Callable[..., AsyncDb]
_numbers = itertools.count()


class Servers:
    """Addresses of servers, each started when first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[str, str] = {}

    def address(self, kind: str) -> str:
        if kind not in self._started:
            start = stator_server if kind == "http" else dynamodb_local
            self._started[kind] = self._stack.enter_context(start())
        return self._started[kind]


@contextmanager
def stator_server() -> Iterator[str]:
    command = [
        str(Path(sys.executable).with_name("stator")),
        "serve",
        "--port",
        "0",
        "--memory",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(stack)


class Target:
    """One of the four, for one test: connects as often as asked, always to the same tables."""

    def __init__(self, kind: str, servers: Servers, folder: Path, stack: ExitStack) -> None:
        self.kind = kind
        self._stack = stack
        self._prefix = f"t{os.getpid()}-{next(_numbers)}-"
        self._engine: Any = None
        if kind in ("memory", "disk"):
            from stator.engine import Engine

            self._engine = stack.enter_context(
                Engine.open(str(folder / "data") if kind == "disk" else None)
            )
            self.address: Any = self._engine
        else:
            self.address = servers.address(kind)

    def connect(self, design: Design, **options: Any) -> Db:
        db = connect(design, self.address, **({"prefix": self._prefix} | self._options() | options))
        self._stack.callback(db.close)
        db.ensure()
        return db

    def bulk(self, design: Design, entity: type[Any]) -> BulkTarget:
        """The table of an entity, for a load, an export or a copy. Close it after use."""
        return BulkTarget.open(
            self.address,
            design=design,
            entity=entity,
            prefix=self._prefix,
            options=cast("TransportOptions", self._options()),
        )

    def connect_async(self, design: Design, **options: Any) -> AsyncDb:
        """The tables are made by a sync twin."""
        self.connect(design)
        return connect_async(
            design, self.address, **({"prefix": self._prefix} | self._options() | options)
        )

    def alone(self) -> None:
        """Use a server of its own: a busy DynamoDB Local can leave an index CREATING for ever."""
        if self.kind == "dynamodb-local":
            self.address = self._stack.enter_context(dynamodb_local())

    def _options(self) -> dict[str, Any]:
        if self._engine is not None:
            return {}
        return {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Target]:
    with ExitStack() as stack:
        yield Target(request.param, servers, tmp_path, stack)
