"""The companions of one engine: finds the one that a request is for, and ends minutes for all.

Minutes end on the engine's clock. With the system's clock the housekeeping thread calls ``settle``
every second. With a virtual clock, ``Engine.sweep`` and every companion request do. If metrics are
recorded, so does the first request of a minute: a minute ends before a later request changes a
table.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from stator.clock import SystemClock
from stator.engine.companions.auto_scaling.scaling_service import AutoScaling
from stator.engine.companions.cloudwatch.cloudwatch import CloudWatch
from stator.engine.companions.companion import Companion, CompanionCall, EngineCall
from stator.engine.companions.insights.insight_rules import InsightRules
from stator.engine.companions.insights.insight_store import InsightStore
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.engine.companions.metrics.recorded_time import RecordedTime
from stator.engine.companions.metrics.traffic_recorder import TrafficRecorder
from stator.engine.companions.records import CompanionRecords
from stator.engine.companions.request_check import check_companion_request
from stator.engine.database import Database
from stator.errors import CompanionRefused, ConfigurationError, StorageError
from stator.model.companion_service import CompanionService
from stator.model.scope import Scope
from stator.model.service import service_model

_MINUTE: Final = 60
_EXPIRE_EVERY_SECONDS: Final = 3600
# After a longer jump of the clock, only the last minutes are ended one by one.
_MOST_SECONDS: Final = 31 * 86_400


class Companions:
    """The companions of one engine; see the module's header.

    With ``records``, the engine's own metrics are recorded.
    """

    def __init__(self, database: Database, call_engine: EngineCall, *, records: bool) -> None:
        self._database = database
        # For companions that send requests to DynamoDB, such as UpdateTable.
        self.call_engine = call_engine
        self._time = RecordedTime(database.storage)
        self.store = MetricStore(database.storage, self._time)
        self.insights = InsightStore(database.storage)
        self.recorder = (
            TrafficRecorder(database, self.store, self._time, self.insights) if records else None
        )
        self.records = CompanionRecords(database.storage)
        rules = InsightRules(database, self.insights)
        self.cloudwatch = CloudWatch(self.records, self.store, rules.operations)
        self._companions: dict[str, Companion] = {}
        self.add(self.cloudwatch)
        # After CloudWatch, because its alarms say in which minutes to scale.
        self.add(AutoScaling(database, call_engine, self.records, self.store, self.cloudwatch))
        now = database.clock.now()
        # The minutes up to this one have ended.
        self._settled = int(now) // _MINUTE * _MINUTE
        self._expired = now
        self._settling = False
        if self.recorder is not None and not isinstance(database.clock, SystemClock):
            self.recorder.log.on_turn = self._settle_if_possible

    def add(self, companion: Companion) -> None:
        """Add a service: pass requests to it, and call it at the end of each minute."""
        self._companions[companion.service.name] = companion

    def services(self) -> tuple[CompanionService, ...]:
        return tuple(companion.service for companion in self._companions.values())

    def call(
        self, service: str, operation: str, request: dict[str, Any], scope: Scope
    ) -> tuple[dict[str, Any], int | None]:
        """Answer one request, and return the commit that must be durable first, or None.

        Raises CompanionRefused with the error that AWS would return.
        """
        companion = self._companions.get(service)
        if companion is None:
            known = ", ".join(self._companions)
            raise ConfigurationError(
                f"there is no companion service {service!r}; use one of: {known}"
            )
        run = companion.operations.get(operation)
        if run is None:
            raise _unknown(companion.service, operation)
        checked = check_companion_request(companion.service, operation, request)
        with self._database.lock:
            self.settle()
            outer, self.records.commit = self.records.commit, None
            try:
                answer = run(CompanionCall(scope, self._database.clock.now()), checked)
                return answer, self.records.commit
            finally:  # a companion may call another one within its own request
                if self.records.commit is None:
                    self.records.commit = outer

    def settle(self) -> None:
        """End the minutes that are over. Does nothing while it is already running."""
        with self._database.lock:
            if self._settling:  # an alarm's action has sent a request
                return
            self._settling = True
            try:
                self._settle(self._database.clock.now())
            finally:
                self._settling = False

    def _settle_if_possible(self) -> None:
        """End minutes before a request, which must not fail because metrics cannot be stored."""
        with suppress(StorageError):
            self.settle()

    def _settle(self, now: float) -> None:
        if self.recorder is not None:
            self.recorder.fold(now)
        ended = int(now) // _MINUTE * _MINUTE
        if ended <= self._settled:
            return
        self._settled = max(self._settled, ended - _MOST_SECONDS)
        while self._settled < ended:
            self._settled += _MINUTE
            if self.recorder is not None:
                self.recorder.end_minute(self._settled)
            for companion in list(self._companions.values()):
                companion.end_minute(self._settled)
        self.save()
        if now - self._expired >= _EXPIRE_EVERY_SECONDS:
            self._expired = now
            self._time.forget(now)
            self.store.expire(now)
            self.insights.expire(now)

    def save(self) -> None:
        """Store the metrics in memory, at the end of a minute and when the engine closes."""
        self.store.flush()
        self.insights.flush()
        self._time.store()

    def close(self) -> None:
        """Store the metrics that are only in memory.

        A full disk must not keep the engine from closing.
        """
        if self.recorder is not None:
            self.recorder.fold(self._database.clock.now())
        with suppress(StorageError):
            self.save()


def _unknown(service: CompanionService, operation: str) -> CompanionRefused:
    """Return the error for an unsupported operation. Its message says whether AWS has it."""
    if operation in service_model(service.name, service.version).operations:
        message = f"Stator does not support the operation {operation} of {service.name}."
    else:
        message = f"The action {operation} is not valid for this web service."
    return CompanionRefused("InvalidAction", message)
