"""A batch write whose result lists every item that could not be written, and why.

python examples/batch.py [ADDRESS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from stator import Delete, Design, Entity, Query, connect, find, ident, read


class Event(Entity):
    device: str = ident()
    number: int = ident()
    text: str


@read(rps=10, returns=100)
def events_of(device: str) -> Query[Event]:
    return find(Event).where(Event.device == device)


log = Design("events", [Event], [events_of])


def events() -> Iterator[Event]:
    """A thousand events; one is larger than DynamoDB accepts."""
    for number in range(1000):
        yield Event(
            device=f"d{number % 7}", number=number, text="x" * (500_000 if number == 500 else 200)
        )


def main(address: str | None = None) -> None:
    with connect(log, address, measure=True) as db:
        db.ensure()
        result = db.write_many(events(), on_error="collect")
        print(f"{result.written} written in {result.requests} requests")
        for failure in result.failures:
            print(f"not written: {failure.change.device} {failure.change.number}: {failure.error}")
        gone = db.write_many(
            [
                *(Delete(Event, device="d0", number=n) for n in range(0, 70, 7)),
                Event(device="d0", number=0, text="back"),
            ]
        )
        print(f"{gone.written} changes; {db.count(events_of('d0'))} events of d0 left")
        assert db.meter is not None
        print(f"{db.meter.by_label['batch'].write_units:.0f} write units")


if __name__ == "__main__":
    main(*sys.argv[1:2])
