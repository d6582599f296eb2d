"""Waves: the first change to every item, then the second change to every item, and so on.

A receiver that takes many messages at once may accept some and refuse others. To keep the order, no
request may hold two changes to one item: the second could arrive without the first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence

from stator.errors import TryLater
from stator.pipeline.sinks.change_sink import Lane, Message
from stator.pipeline.sinks.sink import Refusal, Sink


class WaveSink(Sink):
    """The base of sinks that send in waves: the first message of every item, then the second.

    A subclass defines ``send_wave`` instead of ``send``.
    """

    @abstractmethod
    def send_wave(self, messages: Sequence[Message]) -> list[Refusal]:
        """Send messages, at most one of each item. Return a refusal for each that failed.

        May raise the errors that ``Sink.send`` may raise.
        """

    def send(self, messages: Sequence[Message]) -> Sequence[Refusal] | None:
        """Send wave after wave, and return one refusal for each item that was not fully sent.

        Once an outage occurs, nothing more is sent. Each refusal then names the first unsent change
        of its item.
        """
        refusals: dict[Lane, Refusal] = {}
        away: TryLater | None = None
        for wave in waves(messages):
            left = [message for message in wave if message.lane not in refusals]
            found: list[Refusal] = []
            if away is None and left:
                try:
                    found = self.send_wave(left)
                except TryLater as error:
                    away = error
            if away is not None:
                found = [Refusal(message, away) for message in left]
            for refusal in found:
                refusals[refusal.message.lane] = refusal
                away = refusal.error if isinstance(refusal.error, TryLater) else away
        return list(refusals.values())


def waves(messages: Sequence[Message]) -> list[list[Message]]:
    counts: Counter[Lane] = Counter()
    found: list[list[Message]] = []
    for message in messages:
        number = counts[message.lane]
        counts[message.lane] += 1
        if number == len(found):
            found.append([])
        found[number].append(message)
    return found
