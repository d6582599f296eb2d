"""A device fleet: 50,000 writes a second of state and packed measurements. The second expert's."""

from datetime import datetime
from typing import Annotated, Literal

from stator import (
    Bundle2,
    Count,
    Design,
    Entity,
    Only,
    Query,
    attr,
    created,
    creates,
    distinct,
    find,
    ident,
    largest,
    packed,
    per,
    read,
    share,
    stored,
    together,
    ttl,
    unique,
    updates,
    write,
)


class Fleet(Entity):
    fleet_id: str = ident()
    tenant: str
    name: str


class Device(Entity):
    device_id: str = ident()
    serial: str = unique()
    fleet_id: str
    name: str
    model: str
    firmware: str
    location: str
    config: dict[str, str]


class State(Entity):
    device_id: str = ident()
    fleet_id: str
    last_seen: datetime
    battery: int
    signal: int
    status: Literal["online", "offline"] = "online"
    status_since: datetime


class Block(Entity):
    """Readings of one sensor for a minute."""

    device_id: str = ident(stored="d")
    at: datetime = ident(stored="a")
    temperature: Annotated[list[float], packed("float32")] = stored("t")
    humidity: Annotated[list[float], packed("float32")] = stored("h")
    expires: datetime | None = ttl(days=30, default=None)


class Command(Entity):
    device_id: str = ident()
    command_id: str = ident()
    kind: str
    created_at: datetime = created()
    status: Literal["pending", "sent", "done", "failed"] = "pending"
    payload: dict[str, str]
    expires: datetime | None = ttl(days=14, default=None)


class Alert(Entity):
    device_id: str = ident()
    at: datetime = ident()
    fleet_id: str
    severity: Literal["info", "warning", "critical"]
    state: Literal["open", "acknowledged", "closed"] = "open"
    text: str


@read(rps=800)
def device(device_id: str) -> Query[Device]:
    return find(Device).where(Device.device_id == device_id)


@read(rps=10)
def device_by_serial(serial: str) -> Query[Device]:
    return find(Device).where(Device.serial == serial)


@read(rps=1200)
def device_now(device_id: str) -> Bundle2[Device, State]:
    return together(Device, State).where(Device.device_id == device_id)


@read(rps=3000)
def state(device_id: str) -> Query[State]:
    return find(State).where(State.device_id == device_id)


@read(rps=40, returns=100)
def devices_of(fleet_id: str) -> Only[tuple[str, str, str]]:
    return (
        find(Device)
        .where(Device.fleet_id == fleet_id)
        .order_by(Device.name)
        .limit(100)
        .only(Device.device_id, Device.name, Device.model)
    )


@read(rps=30, returns=4)
def offline(fleet_id: str) -> Query[State]:
    return (
        find(State)
        .where(State.fleet_id == fleet_id, State.status == "offline")
        .newest_first(State.status_since)
        .limit(50)
    )


@read(rps=5)
def offline_count(fleet_id: str) -> Count[State]:
    return find(State).where(State.fleet_id == fleet_id, State.status == "offline").count()


@read(rps=250, returns=60)
def readings(device_id: str, start: datetime, end: datetime) -> Query[Block]:
    return find(Block).where(Block.device_id == device_id, attr(Block.at).between(start, end))


@read(rps=400)
def latest(device_id: str) -> Query[Block]:
    return find(Block).where(Block.device_id == device_id).newest_first(Block.at).limit(1)


@read(rps=2500, returns=1)
def pending(device_id: str) -> Query[Command]:
    return (
        find(Command)
        .where(Command.device_id == device_id, Command.status == "pending")
        .oldest_first(Command.created_at)
        .limit(10)
    )


@read(rps=20, returns=20)
def open_alerts(fleet_id: str, severity: str) -> Query[Alert]:
    return (
        find(Alert)
        .where(Alert.fleet_id == fleet_id, Alert.state == "open", Alert.severity == severity)
        .newest_first(Alert.at)
        .limit(50)
    )


@read(rps=30, returns=20)
def alerts_of(device_id: str) -> Query[Alert]:
    return find(Alert).where(Alert.device_id == device_id).newest_first(Alert.at).limit(20)


@write(rps=36000)
def heartbeat() -> object:
    return updates(State.last_seen, State.battery, State.signal)


@write(rps=13500)
def measure() -> object:
    return creates(Block)


@write(rps=60)
def drop() -> object:
    return updates(
        State.status,
        State.status_since,
        before=State.status == "online",
        after=State.status == "offline",
    )


@write(rps=60)
def back() -> object:
    return updates(
        State.status,
        State.status_since,
        before=State.status == "offline",
        after=State.status == "online",
    )


@write(rps=120)
def send() -> object:
    return creates(Command)


@write(rps=120)
def fetched() -> object:
    return updates(
        Command.status, before=Command.status == "pending", after=Command.status == "sent"
    )


@write(rps=120)
def finished() -> object:
    return updates(Command.status, before=Command.status == "sent", after=Command.status == "done")


@write(rps=50)
def alert() -> object:
    return creates(Alert)


@write(rps=48)
def close_alert() -> object:
    return updates(Alert.state, before=Alert.state == "open", after=Alert.state == "closed")


@write(rps=2)
def provision() -> object:
    return creates(Device), creates(State)


@write(rps=10)
def upgrade() -> object:
    return updates(Device.firmware)


design = Design(
    "fleet",
    [Fleet, Device, State, Block, Command, Alert],
    [
        device,
        device_by_serial,
        device_now,
        state,
        devices_of,
        offline,
        offline_count,
        readings,
        latest,
        pending,
        open_alerts,
        alerts_of,
        heartbeat,
        measure,
        drop,
        back,
        send,
        fetched,
        finished,
        alert,
        close_alert,
        provision,
        upgrade,
    ],
    volumes={
        Fleet: 10_000,
        Device: 2_000_000,
        State: per(Device, 1),
        Block: 35_000_000_000,
        Command: 145_000_000,
        Alert: 400_000_000,
    },
    sizes={Fleet: 200, Device: 800, State: 220, Block: 560, Command: 400, Alert: 300},
    facts=[
        distinct(Block.device_id, values=2_000_000),
        share(State.status == "offline", 0.02),
        share(Command.status == "pending", 0.001),
        distinct(Command.device_id, values=2_000_000),
        share(Alert.state == "open", 0.002),
        largest(Device.fleet_id, 0.08),
        largest(State.fleet_id, 0.08),
        largest(Alert.fleet_id, 0.08),
    ],
)

EXPECTED = {
    "no_index_has": ["battery", "last_seen", "signal"],
    "entities": {
        "Fleet": {"partition": ["fleet_id"], "sort": []},
        "Device": {"partition": ["device_id"], "sort": []},
        "State": {"partition": ["device_id"], "sort": []},
        "Block": {"partition": ["device_id"], "sort": ["at"]},
        "Command": {"partition": ["device_id"], "sort": ["command_id"]},
        "Alert": {"partition": ["device_id"], "sort": ["at"]},
    },
    "patterns": {
        "device": {"by": "base"},
        "device_by_serial": {"by": "guard"},
        "device_now": {"by": "base"},
        "state": {"by": "base"},
        "devices_of": {
            "by": "index",
            "partition": ["fleet_id"],
            "sort": ["name"],
            "projection": "INCLUDE",
        },
        "offline": {"by": "index", "partition": ["status", "fleet_id"], "sort": ["status_since"]},
        "offline_count": {"by": "index", "partition": ["status", "fleet_id"], "sort": []},
        "readings": {"by": "base"},
        "latest": {"by": "base"},
        "pending": {
            "by": "index",
            "partition": ["status", "device_id"],
            "sort": ["created_at"],
            "or": [{"by": "filter"}],
        },
        "open_alerts": {
            "by": "index",
            "partition": ["state", "fleet_id"],
            "sort": ["at"],
            "or": [{"by": "index", "partition": ["state", "fleet_id", "severity"], "sort": ["at"]}],
        },
        "alerts_of": {"by": "base"},
    },
}
WHY = {
    "State": (
        "A small item of its own for the heartbeat, 40,000 writes a second; no index copies it. "
    ),
}
