"""Opens the companions when they are first needed, because most engines never need them.

They are needed at once if the engine records metrics, or if the data has metrics or alarms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stator.engine import keyspace
from stator.engine.companions.companion import EngineCall
from stator.engine.database import Database
from stator.model.companion_service import AUTO_SCALING, CLOUDWATCH, CompanionService
from stator.storage import Storage
from stator.storage.protocol import after_prefix

if TYPE_CHECKING:
    from stator.engine.companions.companions import Companions

_SERVICES: Final = (CLOUDWATCH, AUTO_SCALING)


class LazyCompanions:
    """The companions of one engine, or the means to open them."""

    def __init__(self, database: Database, call_engine: EngineCall, *, records: bool) -> None:
        self._database = database
        self._call_engine = call_engine
        self._records = records
        self._opened: Companions | None = None
        if records or _are_stored(database.storage):
            self.get()

    @property
    def are_open(self) -> bool:
        return self._opened is not None

    def services(self) -> tuple[CompanionService, ...]:
        """Return the services that can be called, opened or not."""
        return _SERVICES if self._opened is None else self._opened.services()

    def get(self) -> Companions:
        with self._database.lock:
            if self._opened is None:
                from stator.engine.companions.companions import Companions

                self._opened = Companions(self._database, self._call_engine, records=self._records)
            return self._opened

    def settle(self) -> None:
        """End the minutes that are over."""
        if self._opened is not None:
            self._opened.settle()

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def _are_stored(storage: Storage) -> bool:
    prefix = keyspace.COMPANIONS
    return next(iter(storage.scan(prefix, after_prefix(prefix))), None) is not None
