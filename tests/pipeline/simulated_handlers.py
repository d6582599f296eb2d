"""The simulation of workers with random handlers of one app, some of which fail.

Every call of a handler is recorded. ``check`` holds the calls against the promise of the guide: a
change is handled only after all earlier ones of its item, by all handlers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stator.errors import TryLater
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.change import Change
from tests.engine.streams.reading import read_all

from .simulation import Applying, Faults, Reading, Simulation

KINDS = {"INSERT": ("insert", "any"), "MODIFY": ("modify", "any"), "REMOVE": ("remove", "any")}


@dataclass(frozen=True)
class HandlerCall:
    handler: str
    key: str
    sequence: int
    succeeded: bool


@dataclass
class HandlerLog:
    """The handlers in their order of registration, and their calls in the order they happened."""

    handlers: list[tuple[str, str]]
    calls: list[HandlerCall] = field(default_factory=list)

    def wanting(self, kind: str) -> list[str]:
        return [name for name, decorator in self.handlers if decorator in KINDS[kind]]

    def check(self, written: dict[str, list[tuple[int, str]]]) -> None:
        """Each call comes after all earlier changes of its item, and after all earlier handlers."""
        done: dict[str, set[tuple[int, str]]] = {}
        for call in self.calls:
            passed = done.setdefault(call.key, set())
            for sequence, kind in written[call.key]:
                wanting = self.wanting(kind)
                if sequence == call.sequence:
                    assert call.handler in wanting
                    wanting = wanting[: wanting.index(call.handler)]
                if sequence <= call.sequence:
                    missing = [name for name in wanting if (sequence, name) not in passed]
                    assert not missing, f"{call} before {sequence} was handled by {missing}"
            if call.succeeded:
                passed.add((call.sequence, call.handler))

    def is_complete(self, written: dict[str, list[tuple[int, str]]]) -> bool:
        passed = {(call.handler, call.key, call.sequence) for call in self.calls if call.succeeded}
        return all(
            (name, key, sequence) in passed
            for key, changes in written.items()
            for sequence, kind in changes
            for name in self.wanting(kind)
        )


class HandlerSimulation(Simulation):
    """Workers whose app has two to five handlers, in random order, next to another subscriber."""

    failing = 0.15

    def __init__(self, seed: int, faults: Faults | None = None, **options: Any) -> None:
        super().__init__(seed, faults, **options)
        count = self.chance.randrange(2, 6)
        decorators = [
            self.chance.choice(["insert", "modify", "remove", "any"]) for _ in range(count)
        ]
        self.log = HandlerLog([(f"h{number}", each) for number, each in enumerate(decorators)])
        self.cursed: set[tuple[str, str]] = set()
        self._failures: dict[tuple[str, str, int], int] = {}

    def app(self) -> StreamApp:
        app = StreamApp(self.design, "group")
        others_first = self.chance.random() < 0.5
        if others_first:
            app.add(Applying(self))
        for name, decorator in self.log.handlers:
            self._register(app, name, decorator)
        if not others_first:
            app.add(Applying(self))
        return app

    def _register(self, app: StreamApp, name: str, decorator: str) -> None:
        def handler(change: Change[Reading]) -> None:
            self._called(name, change)

        getattr(app.on, decorator)(Reading, name=name)(handler)

    def _called(self, name: str, change: Change[Reading]) -> None:
        key, sequence = self.key_of(change.record.keys), int(change.sequence_number)
        self._may_crash()
        left = self._failures.setdefault((name, key, sequence), self._some_failures())
        fails = left > 0 or (name, key) in self.cursed
        self.log.calls.append(HandlerCall(name, key, sequence, not fails))
        if fails:
            self._failures[name, key, sequence] = left - 1
            raise (TryLater("not yet") if left % 2 else ValueError(f"{name} cannot handle {key}"))
        self._may_crash()

    def _some_failures(self) -> int:
        return self.chance.randrange(1, 4) if self.chance.random() < self.failing else 0

    def kinds_written(self) -> dict[str, list[tuple[int, str]]]:
        """Every change there is, with its kind, by key, in order."""
        found: dict[str, list[tuple[int, str]]] = {}
        for record in read_all(self.engine, self.arn):
            body = record["dynamodb"]
            change = int(body["SequenceNumber"]), str(record["eventName"])
            found.setdefault(self.key_of(body["Keys"]), []).append(change)
        return found
