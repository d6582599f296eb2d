"""Tables as they are published in manuals, books and articles, with data of our own.

Each has the CreateTable request in short form, and items in plain Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Plain = dict[str, Any]


@dataclass(frozen=True)
class PublishedTable:
    """A table: key attributes as ``name:type``, indexes, and items.

    ``indexes`` maps a name to key attributes; a name that starts with ``local`` is a local index.
    ``projections`` has those that are not ALL. ``expected`` are the entities that must be found.
    """

    name: str
    key: tuple[str, ...]
    items: tuple[Plain, ...]
    expected: tuple[str, ...]
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    projections: dict[str, Any] = field(default_factory=dict)
    ttl: str | None = None

    def request(self) -> Plain:
        attributes = {
            name: kind
            for each in (*self.key, *(one for key in self.indexes.values() for one in key))
            for name, _, kind in [each.rpartition(":")]
        }
        request: Plain = {
            "TableName": self.name,
            "KeySchema": _schema(self.key),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": kind} for name, kind in attributes.items()
            ],
            "BillingMode": "PAY_PER_REQUEST",
        }
        for index, key in self.indexes.items():
            projection = self.projections.get(index, {"ProjectionType": "ALL"})
            kind = "Local" if index.startswith("local") else "Global"
            request.setdefault(f"{kind}SecondaryIndexes", []).append(
                {"IndexName": index, "KeySchema": _schema(key), "Projection": projection}
            )
        return request


def _schema(key: tuple[str, ...]) -> list[Plain]:
    return [
        {"AttributeName": each.rpartition(":")[0], "KeyType": kind}
        for each, kind in zip(key, ("HASH", "RANGE"))
    ]


def wire(value: Any) -> Plain:
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | Decimal():
            return {"N": str(value)}
        case bytes():
            return {"B": value.decode()}
        case None:
            return {"NULL": True}
        case set():
            is_text = all(isinstance(each, str) for each in value)
            return {"SS" if is_text else "NS": sorted(map(str, value))}
        case list():
            return {"L": [wire(each) for each in value]}
        case dict():
            return {"M": item(value)}
    raise AssertionError(value)


def item(plain: Plain) -> Plain:
    return {name: wire(value) for name, value in plain.items()}


def _music() -> Iterator[Plain]:
    for artist, title, album, year in (
        ("The Tall Ships", "Harbour Lights", "Low Tide", 1998),
        ("The Tall Ships", "Rope & Anchor", "Low Tide", 1998),
        ("No. 7", "Tuesday #2", "Week", 2011),
        ("Élodie", "Sans retour", "Aube", 2020),
    ):
        song = {"Artist": artist, "SongTitle": title, "AlbumTitle": album, "Year": year}
        yield song | ({"Awards": 2} if year == 1998 else {})


def _threads() -> Iterator[Plain]:
    for forum in ("Amazon DynamoDB", "Amazon S3"):
        for number in range(1, 4):
            yield {
                "ForumName": forum,
                "Subject": f"Question {number}: how?",
                "LastPostedDateTime": f"2026-02-0{number}T09:30:00.000Z",
                "Message": "text",
                "Views": number,
                "Answered": number == 2,
                "Tags": {"index", "table"},
                **({"LastPostedBy": f"user{number}@example.org"} if number > 1 else {}),
            }


def _replies() -> Iterator[Plain]:
    for number in range(1, 6):
        yield {
            "Id": "Amazon DynamoDB#Question 1: how?",
            "ReplyDateTime": f"2026-02-0{number}T10:00:00.000Z",
            "Message": f"answer {number}",
            "PostedBy": f"User {'AB'[number % 2]}",
        }


def _products() -> Iterator[Plain]:
    for number in range(101, 107):
        book = number < 104
        yield {
            "Id": number,
            "Title": f"{'Book' if book else 'Bicycle'} {number} Title",
            "Price": Decimal("19.95") if number % 2 else 200,
            "ProductCategory": "Book" if book else "Bicycle",
            "In-Stock": number != 105,
            **({"ISBN": f"111-{number}", "Authors": ["Ann", "Bo"]} if book else {}),
            **({} if book else {"Color": {"Red", "Black"}, "Dimensions": {"cm": 120}}),
        }


def _scores() -> Iterator[Plain]:
    for user in range(101, 105):
        for at, game in enumerate(("Galaxy Invaders", "Meteor Blasters", "Starship X")):
            yield {
                "UserId": str(user),
                "GameTitle": game,
                "TopScore": user * (at + 3),
                "TopScoreDateTime": f"2026-03-{user - 90}:17:24:31",
                "Wins": at,
                "Losses": user - 100,
            }


def _users() -> Iterator[Plain]:
    for number in range(12):
        yield {
            "id": f"0b0e8d2e-6c1c-4a2e-9d0c-0c4b5a6f7e{number:02x}",
            "email": f"u{number}@example.org",
            "firstName": "Anna Maria",
            "last-name": "Berg",
            "created_at": f"2026-01-{number + 1:02}T10:00:00Z",
            "class": "gold" if number % 2 else "blue",
            **({"phone": "+49 1"} if number > 2 else {}),
        }


def _sessions() -> Iterator[Plain]:
    for number in range(6):
        yield {
            "SessionToken": f"tok-{number}/a:b",
            "Username": f"user{number % 2}",
            "ExpiresAt": 4_000_000_000 + number,
            "TTL": 4_000_000_000 + number,
        }


def _shop() -> Iterator[Plain]:
    for user in ("alice", "bob", "carol"):
        yield {
            "PK": f"USER#{user}",
            "SK": "PROFILE",
            "UserId": user,
            "Email": f"{user}@example.org",
            "GSI1PK": f"EMAIL#{user}@example.org",
            "GSI1SK": f"USER#{user}",
        }
        for number in (1, 2):
            order, at = f"{user}-{number}", f"2026-02-1{number}T08:00:00Z"
            yield {"PK": f"USER#{user}", "SK": f"ORDER#{at}", "OrderId": order, "Total": 30}
            yield {
                "PK": f"ORDER#{order}",
                "SK": "METADATA",
                "OrderId": order,
                "UserId": user,
                "Status": "SHIPPED",
                "CreatedAt": at,
                "GSI1PK": f"USER#{user}",
                "GSI1SK": f"ORDER#{at}",
            }
            for product in ("p1", "p2"):
                yield {
                    "PK": f"ORDER#{order}",
                    "SK": f"ITEM#{product}",
                    "ProductId": product,
                    "Quantity": number,
                    "Price": Decimal("9.99"),
                }


def _organizations() -> Iterator[Plain]:
    for org in ("berkshire", "facebook"):
        yield {
            "PK": f"ORG#{org}",
            "SK": f"METADATA#{org}",
            "Type": "Organization",
            "OrgName": org,
            "Plan": "Pro",
        }
        for name in ("ann", "bo", "cy"):
            yield {
                "PK": f"ORG#{org}",
                "SK": f"USER#{name}",
                "Type": "User",
                "OrgName": org,
                "UserName": name,
                **({"Role": "Admin"} if name == "ann" else {}),
            }


def _routers() -> Iterator[Plain]:
    for router in ("12345", "12346"):
        yield {"PK": f"ROUTER#{router}", "SK": "#META", "model": "X 7", "ports": 4}
        for day in range(1, 4):
            yield {
                "PK": f"ROUTER#{router}",
                "SK": f"TEST#2026-03-0{day}T10:00:00Z",
                "router_id": router,
                "test_type": "latency",
                "result": {"latency_ms": 45, "packet_loss": Decimal("0.1")},
                "isp": "Example",
            }


def _paths() -> Iterator[Plain]:
    for tenant in ("t1", "t2"):
        for path in ("/a", "/a/b", "/a/b/c", "/d"):
            yield {"PK": f"TENANT#{tenant}", "SK": f"PATH#{path}", "size": len(path)}
        for day in (1, 2, 3):
            yield {
                "PK": f"TENANT#{tenant}#USER#u{day}",
                "SK": "PROFILE",
                "name": "Ann",
                "path": f"a/b/{day}",
            }


def _tasks() -> Iterator[Plain]:
    for number in range(3):
        yield {"PK": "USER#u1", "SK": f"TASK#t{number}", "title": "x"}
        yield {"PK": f"TASK#t{number}", "SK": "USER#u1", "role": "owner"}
        yield {"PK": f"TASK#t{number}", "SK": f"COMMENT#00{number}", "text": "y"}
    yield {"PK": "CONFIG", "SK": "GLOBAL", "limit": 5}


TABLES = (
    PublishedTable("Music", ("Artist:S", "SongTitle:S"), tuple(_music()), ("Music",)),
    PublishedTable(
        "Thread",
        ("ForumName:S", "Subject:S"),
        tuple(_threads()),
        ("Thread",),
        {"local-last": ("ForumName:S", "LastPostedDateTime:S")},
        {"local-last": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["Views", "Message"]}},
    ),
    PublishedTable(
        "Reply",
        ("Id:S", "ReplyDateTime:S"),
        tuple(_replies()),
        ("Reply",),
        {"PostedBy-Message-Index": ("PostedBy:S", "Message:S")},
        {"PostedBy-Message-Index": {"ProjectionType": "KEYS_ONLY"}},
    ),
    PublishedTable("ProductCatalog", ("Id:N",), tuple(_products()), ("ProductCatalog",)),
    PublishedTable(
        "GameScores",
        ("UserId:S", "GameTitle:S"),
        tuple(_scores()),
        ("GameScore",),
        {"GameTitleIndex": ("GameTitle:S", "TopScore:N")},
    ),
    PublishedTable(
        "prod-users", ("id:S",), tuple(_users()), ("User",), {"email-index": ("email:S",)}
    ),
    PublishedTable(
        "Sessions",
        ("SessionToken:S",),
        tuple(_sessions()),
        ("Session",),
        {"ByUser": ("Username:S",), "Unused": ("Device:S", "Score:N")},
        ttl="TTL",
    ),
    PublishedTable(
        "shop",
        ("PK:S", "SK:S"),
        tuple(_shop()),
        ("Item", "Order", "User", "UserOrder"),
        {"GSI1": ("GSI1PK:S", "GSI1SK:S"), "Inverted": ("SK:S", "PK:S")},
    ),
    PublishedTable("orgs", ("PK:S", "SK:S"), tuple(_organizations()), ("Organization", "User")),
    PublishedTable("routers", ("PK:S", "SK:S"), tuple(_routers()), ("Router", "Test")),
    PublishedTable("tenants", ("PK:S", "SK:S"), tuple(_paths()), ("Path", "User")),
    PublishedTable(
        "tasks", ("PK:S", "SK:S"), tuple(_tasks()), ("Comment", "Config", "Task", "User")
    ),
)
