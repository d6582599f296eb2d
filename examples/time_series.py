"""Sensor readings with an end of life: spread over shards, read in order, summed by the hour.

A reading expires 30 days after it was measured. Reads hide it from that moment, although DynamoDB
deletes it later. The sums of its hour stay for a year.

python examples/time_series.py [ADDRESS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from stator import Db, Design, Entity, Query, connect, find, ident, read
from stator.errors import RequestRefused
from stator.patterns import Rollup, Series


class Sensor(Entity):
    sensor_id: str = ident()
    room: str


class Reading(Entity):
    sensor_id: str = ident()
    at: datetime = ident()
    celsius: float


@read(rps=10)
def sensor(sensor_id: str) -> Query[Sensor]:
    return find(Sensor).where(Sensor.sensor_id == sensor_id)


plant = Design("plant", [Sensor], [sensor])


def readings_of(db: Db) -> Series[Db, Reading]:
    return Series(
        db,
        Reading,
        by=Reading.sensor_id,
        at=Reading.at,
        bucket="hour",
        shards=4,
        keep=timedelta(days=30),
        rollups=[Rollup("hour", of=Reading.celsius, keep=timedelta(days=365))],
    )


def main(address: str | None = None) -> None:
    with connect(plant, address) as db:
        db.ensure()
        readings = readings_of(db)
        start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=3)
        result = readings.add_many(
            Reading(
                sensor_id="s1", at=start + timedelta(seconds=30 * n), celsius=20 + (n % 40) / 10
            )
            for n in range(360)
        )
        print(f"{result.written} readings written")
        hour = list(
            readings.range(
                "s1", start + timedelta(hours=1), start + timedelta(hours=2), newest_first=False
            )
        )
        print(f"{len(hour)} in the second hour, from {hour[0].celsius} to {hour[-1].celsius}")
        page = readings.page("s1", limit=100)
        following = readings.page("s1", limit=100, cursor=page.cursor)
        print(f"two pages, from {page.items[0].at:%H:%M} down to {following.items[-1].at:%H:%M}")
        for summary in readings.rollup("hour", of=Reading.celsius).range(
            "s1", start, start + timedelta(hours=3)
        ):
            print(
                f"{summary.start:%H:%M}: {summary.count} readings, "
                f"{summary.min} to {summary.max}, mean {summary.mean:.2f}"
            )
        print(readings.latest("s1", 1))

        # Its item would expire at once. Sent twice, it would then count twice.
        try:
            readings.add(Reading(sensor_id="s1", at=start - timedelta(days=31), celsius=18))
        except RequestRefused as refused:
            print(f"31 days ago: {refused.message}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
