"""A device fleet: devices by group and firmware, their readings and alarms."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from stator import (
    Design,
    Entity,
    Only,
    Query,
    attr,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    unique,
    updated,
    updates,
    write,
)


class Device(Entity):
    device_id: str = ident()
    serial: str = unique()
    group: str
    firmware: str
    status: Literal["online", "offline", "broken"]
    config: dict[str, str]
    seen_at: datetime = updated()


class Reading(Entity):
    device_id: str = ident()
    at: datetime = ident()
    temperature: float
    humidity: float
    battery: int


class Alarm(Entity):
    alarm_id: str = ident()
    device_id: str
    severity: Literal["info", "warning", "critical"]
    raised_at: datetime
    cleared_at: datetime | None = None
    message: str


@read(rps=100)
def device(device_id: str) -> Query[Device]:
    return find(Device).where(Device.device_id == device_id)


@read(rps=20, returns=50)
def in_group(group: str) -> Only[tuple[str, str, str]]:
    mine = find(Device).where(Device.group == group).limit(50)
    return mine.only(Device.device_id, Device.firmware, Device.status)


@read(rps=1)
def on_firmware(firmware: str) -> Query[Device]:
    return find(Device).where(Device.firmware == firmware).filter(Device.status == "online")


@read(rps=2)
def broken() -> Query[Device]:
    return find(Device).where(Device.status == "broken")


@read(rps=50, returns=288)
def readings(device_id: str, start: datetime, end: datetime) -> Query[Reading]:
    return find(Reading).where(
        Reading.device_id == device_id, Reading.at >= start, Reading.at < end
    )


@read(rps=5, returns=10)
def hot_readings(device_id: str, start: datetime) -> Query[Reading]:
    return (
        find(Reading)
        .where(Reading.device_id == device_id, Reading.at >= start)
        .filter(Reading.temperature > 80.0)
    )


@read(rps=10, returns=5)
def recent_alarms(device_id: str) -> Query[Alarm]:
    return find(Alarm).where(Alarm.device_id == device_id).newest_first(Alarm.raised_at).limit(5)


@read(rps=3, returns=40)
def critical_alarms(since: datetime) -> Query[Alarm]:
    return (
        find(Alarm)
        .where(Alarm.severity == "critical", Alarm.raised_at >= since)
        .newest_first(Alarm.raised_at)
    )


@read(rps=1, returns=20)
def uncleared(device_id: str) -> Query[Alarm]:
    return (
        find(Alarm).where(Alarm.device_id == device_id).filter(attr(Alarm.cleared_at).not_exists())
    )


@write(rps=1000)
def report() -> object:
    return creates(Reading)


@write(rps=200)
def heartbeat() -> object:
    return updates(Device.status)


@write(rps=1)
def install() -> object:
    return creates(Device)


@write(rps=5)
def upgrade() -> object:
    return updates(Device.firmware)


@write(rps=5)
def clear() -> object:
    return updates(Alarm.cleared_at)


fleet = Design(
    "fleet",
    [Device, Reading, Alarm],
    [
        device, in_group, on_firmware, broken, readings, hot_readings, recent_alarms,
        critical_alarms, uncleared, report, heartbeat, install, upgrade, clear,
    ],
    volumes={Device: 100_000, Reading: per(Device, 25_000), Alarm: per(Device, 40)},
    sizes={Device: 1_800},
    facts=[
        distinct(Device.group, values=400),
        distinct(Device.firmware, values=25),
        share(Device.status == "broken", 0.002),
        share(Device.status == "online", 0.9),
        share(Reading.temperature > 80.0, 0.001),
        share(Alarm.severity == "critical", 0.01),
    ],
)  # fmt: skip
