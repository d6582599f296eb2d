"""One fixture for both clients: ``call`` asks through the sync one or through the async one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from stator.client.factory import open_async_client, open_client
from stator.clock import Clock

KEYS = {"access_key_id": "AKID", "secret_access_key": "SECRET", "region": "eu-west-1"}


class Asking(Protocol):
    def __call__(self, url: str, **options: Any) -> Any: ...


class Asked:
    """A client that blocks, whichever kind it is."""

    def __init__(self, kind: str, url: str, clock: Clock | None, options: dict[str, Any]) -> None:
        make: Any = open_async_client if kind == "async" else open_client
        self.client = make("http", url, clock, KEYS | {"proxy": None} | options)
        self._loop = asyncio.new_event_loop() if kind == "async" else None

    def call(self, operation: str, request: dict[str, Any], **options: Any) -> dict[str, Any]:
        if self._loop is None:
            answer: dict[str, Any] = self.client.call(operation, request, **options)
            return answer
        return self._loop.run_until_complete(self.client.call(operation, request, **options))

    def close(self) -> None:
        if self._loop is None:
            self.client.close()
            return
        if self._loop.is_closed():
            return
        self._loop.run_until_complete(self.client.close())
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Iterator[Asking]:
    made: list[Asked] = []

    def make(url: str, *, clock: Clock | None = None, **options: Any) -> Asked:
        made.append(Asked(request.param, url, clock, options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
