"""An interrupted job ends soon, also if the endpoint does not answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stator.addresses import EngineTransport
from stator.engine import Engine
from stator.errors import ReplyLost
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.job import interrupted_threads
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget

from .stock import TABLE, create, write_lines


class Silent(EngineTransport):
    """Answers nothing but questions about tables, until it is closed."""

    parallel = True

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, owned=False)
        self.asked, self.closed = threading.Event(), threading.Event()

    def call(self, operation: str, request: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        if operation not in ("BatchWriteItem", "Scan"):
            return super().call(operation, request, **options)
        self.asked.set()
        self.closed.wait()
        raise ReplyLost("the client was closed before the reply arrived")

    def close(self) -> None:
        self.closed.set()


@pytest.mark.parametrize("job", ["load", "export"])
def test_an_interrupted_job_cuts_off_an_endpoint_that_is_silent(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupted_threads, "GRACE_SECONDS", 0.1)
    engine = Engine.open(None)
    create(engine)
    silent = Silent(engine)
    target = BulkTarget(silent, TABLE, address="silent", owned=True)

    def interrupt(progress: Any) -> None:
        if silent.asked.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        if job == "load":
            rows = write_lines(tmp_path / "rows.jsonl", [{"pk": "a"}])
            load(str(rows), target, LoadOptions(journal=str(tmp_path / "j")), watch=interrupt)
        else:
            table_export(target, str(tmp_path / "out")).run(interrupt)
    assert silent.closed.is_set()
