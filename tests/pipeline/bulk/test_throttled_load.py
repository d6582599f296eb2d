"""Loads into tables that enforce their throughput, in virtual time, by the limit that refuses."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import orjson

from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import SlowDown
from stator.pipeline.bulk.load.load import LoadOptions, load
from stator.pipeline.bulk.targets import BulkTarget
from stator.testing import set_quota
from stator.transport import CallOptions

_CALL_SECONDS = 0.0005
WARM: dict[str, Any] = {
    "WarmThroughput": {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 40_000}
}


@dataclass
class Watched:
    """When the rows of the hot key and the others were last written, and what was refused."""

    clock: VirtualClock
    began: float
    requests: int = 0
    refused: int = 0
    hot_at: float = 0.0
    others: list[float] = field(default_factory=list)

    def sent(self, request: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        self.requests += 1
        at = self.clock.now() - self.began
        left = {_key(each) for each in (reply.get("UnprocessedItems") or {}).get("tab", ())}
        self.refused += bool(left)
        written = {_key(each) for each in request["RequestItems"]["tab"]} - left
        if any(key[0] == "hot" for key in written):
            self.hot_at = at
        self.others += [at for key in written if key[0] != "hot"]

    def others_at(self, share: float) -> float:
        """When this share of the rows with other keys was written."""
        return sorted(self.others)[int(share * (len(self.others) - 1))]


class WatchedTransport(EngineTransport):
    """Calls an engine once for each request, as a job does, and tells ``watched``."""

    def __init__(self, engine: Engine, watched: Watched) -> None:
        super().__init__(engine, owned=False, max_attempts=1)
        self._watched = watched

    def call(
        self, operation: str, request: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> dict[str, Any]:
        if operation != "BatchWriteItem":
            return super().call(operation, request, **options)
        self._watched.clock.advance(_CALL_SECONDS)
        plain = orjson.loads(orjson.dumps(request))  # the items are JSON already
        try:
            reply = super().call(operation, plain, **options)
        except SlowDown:
            self._watched.requests += 1
            self._watched.refused += 1
            raise
        self._watched.sent(plain, reply)
        return reply


def _key(put: Mapping[str, Any]) -> tuple[str, str]:
    item = put["PutRequest"]["Item"]
    return item["p"]["S"], item["s"]["N"]


def loaded(
    folder: Path, rows: int, *, hot: float = 0.0, quota: float = 0.0, **table: Any
) -> Watched:
    """Load rows, of which the share ``hot`` has one partition key, with one writer."""
    chance = random.Random(1)
    path = folder / "rows.jsonl"
    keys = ("hot" if chance.random() < hot else f"k{number}" for number in range(rows))
    path.write_text("\n".join(json.dumps({"p": key, "s": at}) for at, key in enumerate(keys)))
    clock = VirtualClock(1_790_000_000.0)
    with Engine.open(clock=clock, throughput="enforced") as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "tab",
                "KeySchema": [
                    {"AttributeName": "p", "KeyType": "HASH"},
                    {"AttributeName": "s", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [
                    {"AttributeName": "p", "AttributeType": "S"},
                    {"AttributeName": "s", "AttributeType": "N"},
                ],
                "BillingMode": "PAY_PER_REQUEST",
                **table,
            },
        )
        if quota:
            set_quota(engine, write_units=quota)
        watched = Watched(clock, clock.now())
        with BulkTarget(WatchedTransport(engine, watched), "tab") as target:
            report = load(
                str(path), target, LoadOptions(writers=1, journal=folder / "j"), clock=clock
            )
        assert report.ok and report.written == rows
        return watched


def test_a_hot_key_does_not_slow_the_other_keys(tmp_path: Path) -> None:
    seen = loaded(tmp_path, 30_000, hot=0.1, **WARM)
    assert 2.5 < seen.hot_at < 6.0  # about 3,000 rows at 1,000 a second
    # Some of the others share the hot key's partition, and have to wait with it.
    assert len(seen.others) * 0.9 / seen.others_at(0.9) > 10_000


def test_a_load_settles_at_the_rate_of_a_provisioned_table(tmp_path: Path) -> None:
    units = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 500}
    seen = loaded(tmp_path, 10_000, BillingMode="PROVISIONED", ProvisionedThroughput=units)
    assert seen.others_at(1.0) < 10_000 / 500 * 1.25
    assert seen.refused < seen.requests * 0.2
    assert seen.refused < 100


def test_an_account_limit_slows_the_whole_load(tmp_path: Path) -> None:
    seen = loaded(tmp_path, 20_000, hot=0.02, quota=2_000, **WARM)
    assert 8.0 < seen.others_at(1.0) < 13.0
    assert seen.refused < seen.requests * 0.25
