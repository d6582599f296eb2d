"""The simulation of workers, with AWS Lambda in place of the workers.

Event source mappings invoke functions with batches of a shard. Several batches of a shard may be
out at once, with different items in each (ParallelizationFactor). A batch that failed comes again
as a whole, from its lowest failure on, in halves, or mixed with other changes. An invocation may
crash, and may still be at work when its changes are handled again elsewhere.
"""

from __future__ import annotations

from typing import Any

from stator.errors import StatorError
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.aws_lambda import handled
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.lambda_event import read_event
from stator.tables.work import Work
from tests.engine.streams.reading import read_all

from .simulation import Simulation, Task, check_order

_MOST_AT_ONCE = 5


class OnLambda(Simulation):
    """Mixed into a simulation: its app runs on Lambda."""

    # By sequence number. Whole batches count as handled up to their lowest failure.
    handled_numbers: set[str]

    def start_worker(self) -> str:
        self.handled_numbers = getattr(self, "handled_numbers", set())
        self.functions: list[StreamApp] = [self.app() for _ in range(3)]
        return ""

    def happen(self) -> None:
        super().happen()
        if self.chance.random() < 0.1 and len(self.tasks) < _MOST_AT_ONCE:
            self.invoke()
        if self.chance.random() < 0.02 and (records := self.records()):
            self.poison ^= {self.key_of(self.chance.choice(records).keys)}

    def records(self) -> list[Record]:
        raw = read_all(self.engine, self.arn)
        for each in raw:
            each["eventSourceARN"] = self.arn
        return read_event({"Records": raw}, self.context)

    def invoke(self) -> None:
        """Send a batch: changes of items that no other batch has, each item's in order."""
        busy = {key for task in self.tasks for key in getattr(task, "keys", ())}
        repeats = not self.calm and self.chance.random() < 0.1
        waiting: dict[str, list[Record]] = {}
        for record in self.records():
            key = self.key_of(record.keys)
            if repeats or (record.sequence not in self.handled_numbers and key not in busy):
                waiting.setdefault(key, []).append(record)
        if not waiting:
            return
        chosen = self.chance.sample(sorted(waiting), self.chance.randrange(1, len(waiting) + 1))
        batch = [
            record
            for key in chosen
            for record in waiting[key][: self.chance.choice([1, 2, 5, 100])]
        ]
        self._number += 1
        batch.sort(key=lambda record: int(record.sequence))
        self.tasks.append(
            Invocation(f"f{self._number}", self._run(batch), keys=() if repeats else tuple(chosen))
        )

    def _run(self, batch: list[Record]) -> Work[None]:
        app = self.chance.choice(self.functions)
        try:
            failed = yield from handled(app, self.context, batch)
        except StatorError:
            return  # the function ended with an error, and all of it comes again
        for record in batch:
            if failed is None or int(record.sequence) < int(failed):
                self.handled_numbers.add(record.sequence)

    def finish_on_lambda(self) -> None:
        """No more faults: deliver what is left, check the order, and compare."""
        self.calm = True
        self.stalled.clear()
        self.poison.clear()
        for _ in range(20_000):
            if not self.tasks:
                self.invoke()
                if not self.tasks:
                    break
            self.step()
        assert not self.tasks
        check_order(self.applied.by_key, self.written())
        self.compare()

    def compare(self) -> None:
        raise NotImplementedError


class Invocation(Task):
    def __init__(self, worker: str, work: Any, *, keys: tuple[str, ...]) -> None:
        super().__init__(worker, work)
        self.keys = keys
