"""Any table: random keys, indexes, names and items end in a design that fits."""

from __future__ import annotations

import random
import re
from base64 import b64encode
from typing import Any

import pytest

from stator import Engine
from stator.design.infer import infer
from stator.errors import ConfigurationError, ValidationFailed

from .test_published_tables import check, inferred, scanned

NAMES: tuple[str, ...] = (
    "PK", "SK", "pk", "sk", "GSI1PK", "GSI1SK", "id", "Id", "userId", "user_id", "user-id", "type",
    "_type", "kind", "class", "from", "date", "list", "ident", "stored", "a.b", "a b", "2nd", "日",
    "ttl", "expiresAt", "email", "status", "createdAt", "price", "tags", "-", "__typename", "name",
    "Decimal", "find", "x#y", "data", "None", "self", "_class", "_v", "item", "$ref", "a{b}", "A",
)  # fmt: skip
WORDS = ("USER", "ORDER", "order", "Item", "TENANT", "META", "#META", "PROFILE", "v1", "CONFIG")
STYLES = ("word", "pair", "long", "id", "time", "path", "spaced", "colon", "escaped")


class TableMaker:
    """Makes a random table from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        names = self.rng.sample(NAMES, 14)
        self.key = names[: self.rng.randint(1, 2)]
        self.types = {name: self.rng.choice("SSSSSNB") for name in names}
        self.plain = names[8:]
        self.indexes: dict[str, tuple[list[str], list[str], bool, dict[str, Any]]] = {}
        for at in range(self.rng.randint(0, 3)):
            local = len(self.key) == 2 and self.rng.random() < 0.3
            size = self.rng.choice((1, 1, 1, 2))
            pool = self.rng.sample(names, 5)
            partition = [self.key[0]] if local else pool[:size]
            rest = [name for name in pool[size:] if name not in partition]
            sort = rest[:1] if local else rest[: self.rng.randint(0, size)]
            projection = self.rng.choice(
                (
                    {"ProjectionType": "ALL"},
                    {"ProjectionType": "KEYS_ONLY"},
                    {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["zip", "size"]},
                )
            )
            self.indexes[f"index-{at}"] = (partition, sort, local, projection)
        self.styles = self.rng.sample(STYLES, self.rng.randint(1, 3))
        self.keyed = {
            *self.key,
            *(name for each in self.indexes.values() for side in each[:2] for name in side),
        }

    def request(self) -> dict[str, Any]:
        request: dict[str, Any] = {
            "TableName": "any-table",
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": _schema(self.key[:1], self.key[1:]),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": self.types[name]}
                for name in sorted(self.keyed)
            ],
        }
        for name, (partition, sort, local, projection) in self.indexes.items():
            member = f"{'Local' if local else 'Global'}SecondaryIndexes"
            request.setdefault(member, []).append(
                {
                    "IndexName": name,
                    "KeySchema": _schema(partition, sort),
                    "Projection": projection,
                }
            )
        return request

    def text(self) -> str:
        rng, style = self.rng, self.rng.choice(self.styles)
        word, number = rng.choice(WORDS), rng.randint(1, 30)
        return {
            "word": word,
            "pair": f"{word}#{number}",
            "long": f"{word}#{number}#{rng.choice(WORDS)}#{rng.randint(1, 3)}",
            "id": f"id-{number}",
            "time": f"2026-01-{number:02}T10:00:00Z",
            "path": f"a/b{number}/c",
            "spaced": f"{word}#the {number}",
            "colon": f"{word}:{number}:x",
            "escaped": f"{word}#$23{number}",
        }[style]

    def key_value(self, name: str) -> dict[str, Any]:
        kind = self.types[name]
        if kind == "S":
            return {"S": self.text()}
        if kind == "N":
            return {"N": self.rng.choice(("1", "2.5", "-7", str(self.rng.randint(1, 99))))}
        return {"B": b64encode(self.text().encode()).decode()}

    def value(self) -> dict[str, Any]:
        return self.rng.choice(
            (
                {"S": self.text()},
                {"S": "red"},
                {"S": ""},
                {"N": str(self.rng.randint(0, 9))},
                {"N": "2.50"},
                {"N": "1800000000"},
                {"BOOL": True},
                {"NULL": True},
                {"SS": ["a", "b"]},
                {"NS": ["1", "2.5"]},
                {"L": [{"S": "x"}, {"N": "1"}]},
                {"M": {"a": {"M": {"b": {"N": "1"}}}}},
                {"B": "aGk="},
            )
        )

    def item(self) -> dict[str, Any]:
        found = {name: self.key_value(name) for name in self.key}
        for name in sorted(self.keyed - set(self.key)):
            if self.rng.random() < 0.7:
                found[name] = self.key_value(name)
        for name in self.plain:
            if name not in self.keyed and self.rng.random() < 0.6:
                is_type = name in ("type", "_type", "kind", "__typename")
                found[name] = {"S": self.rng.choice(("cat", "dog"))} if is_type else self.value()
        return found

    def is_refused(self, items: list[dict[str, Any]]) -> bool:
        """Whether a key or the versions of items have a name that Stator uses itself."""
        versions = [item["_v"].get("N", "") for item in items if "_v" in item]
        return bool(self.keyed & {"_class", "_v"}) or not all(
            re.fullmatch(r"[1-9]\d*", each) for each in versions
        )


def _schema(partition: list[str], sort: list[str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": "HASH"} for name in partition] + [
        {"AttributeName": name, "KeyType": "RANGE"} for name in sort
    ]


@pytest.mark.parametrize("seed", range(30))
def test_any_table_ends_in_a_design_that_fits(seed: int) -> None:
    made = TableMaker(seed)
    with Engine.open() as engine:
        try:
            engine.call("CreateTable", made.request())
        except ValidationFailed:
            pytest.skip("DynamoDB has no such table")
        for _ in range(made.rng.randint(1, 14)):
            engine.call("PutItem", {"TableName": "any-table", "Item": made.item()})
        if made.is_refused(scanned(engine, "any-table")):
            with pytest.raises(ConfigurationError, match=r"_v|_class"):
                inferred(engine, ["any-table"], "any-table")
            return
        text, design = inferred(engine, ["any-table"], "any-table")
        check(engine, ["any-table"], text, design)


def test_an_empty_table_is_an_error_that_says_so() -> None:
    with pytest.raises(ConfigurationError, match="any-table has no items"):
        infer([], table="any-table")
