"""A device fleet that writes 50,000 tiny readings a second."""

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
    stored,
    ttl,
    unique,
    updates,
    write,
)


class Fleet(Entity):
    fleet_id: str = ident()
    name: str


class Device(Entity):
    device_id: str = ident()
    serial: str = unique()
    fleet_id: str
    model: str
    firmware: str
    online: bool = False
    settings: dict[str, str]


class Firmware(Entity):
    model: str = ident()
    version_name: str = ident()
    released_at: datetime
    url: str


class Telemetry(Entity):
    device_id: str = ident(stored="d")
    at: datetime = ident(stored="a")
    battery: int = stored("b")
    celsius: int = stored("c")
    expires: datetime | None = ttl(days=30, default=None, stored="x")


class Alert(Entity):
    device_id: str = ident()
    alert_id: str = ident()  # a ULID
    fleet_id: str
    severity: Literal["info", "warning", "critical"]
    text: str
    open_since: datetime | None = None  # removed when somebody closes it: one in 2,000 is open


class Command(Entity):
    device_id: str = ident()
    command_id: str = ident()  # a ULID
    kind: str
    payload: str
    pending_since: datetime | None = None  # removed when the device has fetched it
    expires: datetime | None = ttl(days=90, default=None, stored="x")


@read(rps=10)
def fleet(fleet_id: str) -> Query[Fleet]:
    return find(Fleet).where(Fleet.fleet_id == fleet_id)


@read(rps=1_000)
def device(device_id: str) -> Query[Device]:
    return find(Device).where(Device.device_id == device_id)


@read(rps=5)
def device_by_serial(serial: str) -> Query[Device]:
    return find(Device).where(Device.serial == serial)


@read(rps=4, returns=500)
def devices_of_fleet(fleet_id: str) -> Only[tuple[str, str]]:
    return find(Device).where(Device.fleet_id == fleet_id).only(Device.device_id, Device.firmware)


@read(rps=1, returns=80)
def devices_on_firmware(fleet_id: str, firmware: str) -> Only[tuple[str]]:
    return (
        find(Device)
        .where(Device.fleet_id == fleet_id, Device.firmware == firmware)
        .only(Device.device_id)
    )


@read(rps=3, returns=30)
def firmware_of_model(model: str) -> Query[Firmware]:
    return find(Firmware).where(Firmware.model == model)


@read(rps=300, returns=1)
def newest_firmware(model: str) -> Query[Firmware]:
    return find(Firmware).where(Firmware.model == model).newest_first(Firmware.released_at).limit(1)


@read(rps=40, returns=360)
def telemetry_between(device_id: str, start: datetime, end: datetime) -> Query[Telemetry]:
    return (
        find(Telemetry)
        .where(Telemetry.device_id == device_id, Telemetry.at >= start, Telemetry.at < end)
        .oldest_first(Telemetry.at)
    )


@read(rps=300, returns=1)
def latest_telemetry(device_id: str) -> Query[Telemetry]:
    return (
        find(Telemetry).where(Telemetry.device_id == device_id).newest_first(Telemetry.at).limit(1)
    )


@read(rps=30, returns=20)
def alerts_of_device(device_id: str) -> Query[Alert]:
    return find(Alert).where(Alert.device_id == device_id).newest_first(Alert.alert_id).limit(20)


@read(rps=50, returns=15)
def open_alerts_of_fleet(fleet_id: str) -> Query[Alert]:
    return (
        find(Alert)
        .where(Alert.fleet_id == fleet_id, attr(Alert.open_since).exists())
        .newest_first(Alert.open_since)
    )


@read(rps=8_000, returns=1)
def pending_commands(device_id: str) -> Query[Command]:
    return (
        find(Command)
        .where(Command.device_id == device_id, attr(Command.pending_since).exists())
        .oldest_first(Command.pending_since)
    )


@read(rps=20)
def command(device_id: str, command_id: str) -> Query[Command]:
    return find(Command).where(Command.device_id == device_id, Command.command_id == command_id)


@write(rps=50_000)
def report() -> object:
    return creates(Telemetry)


@write(rps=200)
def connected_or_lost() -> object:
    return updates(Device.online)


@write(rps=10)
def upgraded() -> object:
    return updates(Device.firmware)


@write(rps=40)
def raise_alert() -> object:
    return creates(Alert)


@write(rps=38)
def close_alert() -> object:
    return updates(Alert.open_since)


@write(rps=60)
def send_command() -> object:
    return creates(Command)


@write(rps=60)
def fetched() -> object:
    return updates(Command.pending_since)


design = Design(
    "fleet",
    [Fleet, Device, Firmware, Telemetry, Alert, Command],
    [
        fleet,
        device,
        device_by_serial,
        devices_of_fleet,
        devices_on_firmware,
        firmware_of_model,
        newest_firmware,
        telemetry_between,
        latest_telemetry,
        alerts_of_device,
        open_alerts_of_fleet,
        pending_commands,
        command,
        report,
        connected_or_lost,
        upgraded,
        raise_alert,
        close_alert,
        send_command,
        fetched,
    ],
    facts=[
        distinct(Device.fleet_id, values=1_000),
        distinct(Device.firmware, values=60),
        distinct(Device.fleet_id, Device.firmware, values=6_000),
        distinct(Alert.fleet_id, values=1_000),
        share(attr(Alert.open_since).exists(), 0.0005),
        share(attr(Command.pending_since).exists(), 0.001),
    ],
    volumes={
        Fleet: 1_000,
        Device: per(Fleet, 500),
        Firmware: 1_200,
        Telemetry: per(Device, 259_200),
        Alert: per(Device, 60),
        Command: per(Device, 150),
    },
    sizes={Fleet: 300, Device: 2_500, Firmware: 500, Telemetry: 60, Alert: 400, Command: 350},
)

EXPECTED = {
    "max_indexes": 2,
    "entities": {
        "Fleet": {"partition": ["fleet_id"], "sort": []},
        "Device": {"partition": ["device_id"], "sort": []},
        "Firmware": {"partition": ["model"], "sort": ["version_name"]},
        "Telemetry": {"partition": ["device_id"], "sort": ["at"]},
        "Alert": {"partition": ["device_id"], "sort": ["alert_id"]},
        "Command": {
            "partition": ["device_id", "command_id"],
            "sort": [],
            "or": [{"partition": ["device_id"], "sort": ["command_id"]}],
        },
    },
    "patterns": {
        "fleet": {"by": "base"},
        "device": {"by": "base"},
        "device_by_serial": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["serial"], "sort": []}],
        },
        "devices_of_fleet": {
            "by": "index",
            "partition": ["fleet_id"],
            "sort": ["firmware"],
            "projection": "INCLUDE",
            "projection_or": ["KEYS_ONLY"],
        },
        "devices_on_firmware": {
            "by": "index",
            "partition": ["fleet_id"],
            "sort": ["firmware"],
            "projection": "INCLUDE",
            "projection_or": ["KEYS_ONLY"],
            "shares_with": "devices_of_fleet",
        },
        "firmware_of_model": {
            "by": "base",
            "or": [{"by": "index", "partition": ["model"], "sort": ["released_at"]}],
        },
        "newest_firmware": {"by": "index", "partition": ["model"], "sort": ["released_at"]},
        "telemetry_between": {"by": "base"},
        "latest_telemetry": {"by": "base"},
        "alerts_of_device": {"by": "base"},
        "open_alerts_of_fleet": {
            "by": "index",
            "partition": ["fleet_id"],
            "sort": ["open_since"],
            "sparse": True,
        },
        "pending_commands": {
            "by": "index",
            "partition": ["device_id"],
            "sort": ["pending_since"],
            "sparse": True,
        },
        "command": {"by": "base"},
    },
    "no_index_on": ["Telemetry"],
    "no_index_has": ["online"],
}
WHY = {
    "Telemetry": "Each index on it would cost another 50,000 write units a second. 60 bytes each, "
    "one reading a device every ten seconds: no partition is hot, so no shards either.",
    "devices_of_fleet": "One index on fleet_id then firmware answers both lists. It must not hold "
    "`online` or the settings: 200 updates a second would be copied into it for nobody.",
    "pending_commands": "8,000 polls a second: the sparse index reads half a unit where the "
    "device's "
    "150 commands would be seven.",
    "Command": "Once the poll has its index, nothing lists by the base key.",
    "layout": "An expert gives Telemetry a table of its own (expiry, no backups, own "
    "capacity), which "
    "the language can only say for all entities at once.",
}
