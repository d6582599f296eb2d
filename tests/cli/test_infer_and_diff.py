"""``stator infer`` and ``stator diff``: a design inferred from a table fits that table."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stator.engine import Engine
from stator.server import BackgroundServer, ServerOptions
from tests import warm_python

STATOR = Path(sys.executable).parent / "stator"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm_python.run("-m", "stator", *arguments, cwd=folder)


def items() -> Iterator[dict[str, Any]]:
    for user in range(20):
        yield {
            "PK": {"S": f"USER#u{user}"},
            "SK": {"S": "PROFILE"},
            "user_id": {"S": f"u{user}"},
            "email": {"S": f"u{user}@example.org"},
            "GSI1PK": {"S": f"EMAIL#u{user}@example.org"},
            "GSI1SK": {"S": f"USER#u{user}"},
            "photo": {"B": "aGVsbG8="},
        }
        for order in range(3):
            yield {
                "PK": {"S": f"USER#u{user}"},
                "SK": {"S": f"ORDER#2026-01-0{order + 1}#o{user}-{order}"},
                "user_id": {"S": f"u{user}"},
                "order_id": {"S": f"o{user}-{order}"},
                "day": {"S": f"2026-01-0{order + 1}"},
                "status": {"S": ("open", "paid", "sent")[order]},
                "total": {"N": "9.50"},
            }


@pytest.fixture
def address() -> Iterator[str]:
    with Engine.open() as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "prod-shop",
                "KeySchema": [
                    {"AttributeName": "PK", "KeyType": "HASH"},
                    {"AttributeName": "SK", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [
                    {"AttributeName": name, "AttributeType": "S"}
                    for name in ("PK", "SK", "GSI1PK", "GSI1SK")
                ],
                "BillingMode": "PAY_PER_REQUEST",
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "GSI1",
                        "KeySchema": [
                            {"AttributeName": "GSI1PK", "KeyType": "HASH"},
                            {"AttributeName": "GSI1SK", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
            },
        )
        for item in items():
            engine.call("PutItem", {"TableName": "prod-shop", "Item": item})
        with BackgroundServer(engine, ServerOptions(port=0)) as server:
            yield f"http://127.0.0.1:{server.port}"


def test_an_inferred_design_fits_the_table_it_came_from(address: str, tmp_path: Path) -> None:
    made = run(tmp_path, "infer", address, "prod-shop", "--out", "design.py")
    assert made.returncode == 0, made.stderr
    assert "guessed" in made.stdout
    text = (tmp_path / "design.py").read_text()
    assert 'class Order(Entity, key=("USER#{user_id}", "ORDER#{day}#{order_id}")):' in text
    assert "photo: bytes" in text
    same = run(tmp_path, "diff", "--live", address)
    assert (same.returncode, same.stderr) == (0, "")
    assert "no differences from the design" in same.stdout


def test_each_difference_has_a_remedy(address: str, tmp_path: Path) -> None:
    run(tmp_path, "infer", address, "prod-shop", "--out", "design.py")
    design = tmp_path / "design.py"
    wanted = 'key=("USER#{user_id}", "PROFILE"),\n    index={"GSI1"'
    text = design.read_text()
    assert wanted in text
    design.write_text(text.replace(wanted, wanted.replace("GSI1", "ByEmail")))
    found = run(tmp_path, "diff", "--live", address, "--json")
    assert found.returncode == 1
    said = {(each["severity"], each["where"]) for each in json.loads(found.stdout)["differences"]}
    assert said == {("missing", "prod-shop/ByEmail"), ("extra", "prod-shop/GSI1")}
    shown = run(tmp_path, "diff", "--live", address).stdout
    assert "2 differences" in shown
    design.write_text(text.replace('"prod-shop"', '"shop"'))
    assert run(tmp_path, "diff", "--live", address).returncode == 1
    assert run(tmp_path, "diff", "--live", address, "--prefix", "prod-").returncode == 0


def test_the_additional_table_is_compared_if_needed_or_requested(
    address: str, tmp_path: Path
) -> None:
    run(tmp_path, "infer", address, "prod-shop", "--out", "design.py")
    assert run(tmp_path, "diff", "--live", address).returncode == 0
    asked = run(tmp_path, "diff", "--live", address, "--with-patterns", "--json")
    [missing] = json.loads(asked.stdout)["differences"]
    assert (asked.returncode, missing["severity"], missing["where"]) == (
        1,
        "missing",
        "prod-shop-stator",
    )
    design = tmp_path / "design.py"
    text = design.read_text()
    assert "    email: str\n" in text
    first = "from __future__ import annotations\n"
    marked = text.replace("    email: str\n", "    email: str = unique()\n")
    design.write_text(marked.replace(first, f"{first}from stator import unique\n"))
    needed = run(tmp_path, "diff", "--live", address)
    assert needed.returncode == 1, needed.stderr
    assert "prod-shop-stator: there is no such table" in needed.stdout
    name = next(line.partition(" = ")[0] for line in text.splitlines() if " = Design(" in line)
    script = (
        f"from stator import connect; import design; connect(design.{name}, {address!r}).ensure()"
    )
    made = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert made.returncode == 0, made.stderr
    same = run(tmp_path, "diff", "--live", address)
    assert same.returncode == 0, same.stdout
    assert "prod-shop, prod-shop-stator" in same.stdout


def test_a_design_is_inferred_from_an_export_file(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"Item": item}) + "\n" for item in items())
    (tmp_path / "shop.json.gz").write_bytes(gzip.compress(lines.encode()))
    made = run(tmp_path, "infer", "shop.json.gz", "--out", "design.py")
    assert made.returncode == 0, made.stderr
    assert "guessed from the names: PK and SK" in made.stdout
    again = run(tmp_path, "infer", "shop.json.gz", "--out", "design.py")
    assert again.returncode == 1
    assert "--force" in again.stderr


def test_a_truncated_export_file_is_refused(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"Item": item}) + "\n" for item in items())
    (tmp_path / "shop.json.gz").write_bytes(gzip.compress(lines.encode())[:-20])
    made = run(tmp_path, "infer", "shop.json.gz", "--out", "design.py")
    assert made.returncode == 1 and "Traceback" not in made.stderr
    assert "shop.json.gz is not an export: the gzip data ends too early" in made.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["infer", "nothing.json"], "there is no file or folder nothing.json"),
        (["infer", "ftp://x", "t"], "not a DynamoDB address"),
        (["infer", "http://127.0.0.1:9", "t"], "`stator serve`"),
        (["infer", "broken.json"], "broken.json:1: the line is not an item in DynamoDB JSON"),
        (["infer", "empty.json"], "holds no items"),
        (["infer", "keyless.json"], "--key"),
        (["diff", "missing.py"], "there is no file missing.py"),
    ],
)
def test_a_mistake_is_explained(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "broken.json").write_text('{"Item": {"PK": "plain"}}\n')
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "keyless.json").write_text('{"Item": {"colour": {"S": "red"}}}\n')
    failed = run(tmp_path, *arguments)
    assert failed.returncode == 1
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_missing_table_is_answered_with_the_existing_ones(address: str, tmp_path: Path) -> None:
    failed = run(tmp_path, "infer", address, "shop")
    assert "there is no table shop" in failed.stderr
    assert "prod-shop" in failed.stderr


@pytest.fixture
def several(tmp_path: Path) -> Iterator[str]:
    """Three tables with natural keys, of which one is empty."""
    with Engine.open() as engine:
        for name, kind in (("app-users", "S"), ("app-readings", "N"), ("app-empty", "S")):
            engine.call(
                "CreateTable",
                {
                    "TableName": name,
                    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": kind}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            )
        for number in range(4):
            user = {"id": {"S": f"u {number}"}, "photo-small": {"B": "/+8="}}
            engine.call("PutItem", {"TableName": "app-users", "Item": user})
            reading = {"id": {"N": str(number)}, "takenAt": {"S": "2026-01-01T10:00:00Z"}}
            engine.call("PutItem", {"TableName": "app-readings", "Item": reading})
        setting = {"AttributeName": "gone", "Enabled": True}
        engine.call(
            "UpdateTimeToLive", {"TableName": "app-users", "TimeToLiveSpecification": setting}
        )
        with BackgroundServer(engine, ServerOptions(port=0)) as server:
            yield f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize("named", [[], ["app-users", "app-readings"]])
def test_one_design_for_all_or_several_tables(
    several: str, tmp_path: Path, named: list[str]
) -> None:
    made = run(tmp_path, "infer", several, *named, "--out", "design.py")
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "design.py").read_text()
    assert 'class User(Entity, table="app-users", key={"id": "{id}"}):' in text
    assert 'photo_small: bytes = stored("photo-small")' in text
    assert "gone: datetime | None = ttl(default=None)" in text
    assert 'Design(\n    "app",' in text
    same = run(tmp_path, "diff", "--live", several)
    assert (same.returncode, same.stderr) == (0, ""), same.stdout


def test_an_empty_table_cannot_be_inferred_by_name(several: str, tmp_path: Path) -> None:
    failed = run(tmp_path, "infer", several, "app-empty")
    assert failed.returncode == 1
    assert "app-empty has no items" in failed.stderr
