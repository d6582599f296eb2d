"""``stator load``, ``export`` and ``copy``: against a server, killed, interrupted, mistyped."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from stator.addresses import Address, open_transport
from stator.bulk import CopyOptions, ExportOptions, LoadOptions
from stator.cli.main import main
from tests import warm_python

from .design_folder import DESIGN
from .serving import ENVIRONMENT, Serving

TABLE = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def stator(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm_python.run("-m", "stator", *arguments, cwd=folder, env=ENVIRONMENT)


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "stator", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def url() -> Any:
    with Serving() as serving:
        address = (
            serving.facts["url"]
            if "url" in serving.facts
            else f"http://127.0.0.1:{serving.facts['port']}"
        )
        yield address


@pytest.fixture
def table(url: str) -> Any:
    """A transport to an empty table."""
    transport = open_transport(
        Address.parse(url),
        None,
        {"region": "us-east-1", "access_key_id": "x", "secret_access_key": "x"},
    )
    transport.call("CreateTable", TABLE)
    yield transport
    transport.call("DeleteTable", {"TableName": "orders"})
    transport.close()


def keys(transport: Any, name: str = "orders") -> list[str]:
    found: list[str] = []
    request: dict[str, Any] = {"TableName": name}
    while True:
        page = transport.call("Scan", request)
        found += [item["pk"]["S"] for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return found
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def lines(path: Path, count: int) -> Path:
    path.write_text(
        "".join(json.dumps({"pk": f"k{number:06d}", "n": number}) + "\n" for number in range(count))
    )
    return path


def test_files_go_in_come_out_and_are_copied(url: str, table: Any, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,total,note\na,1.5,x\nb,2,\n,3,no key\n")
    ran = stator(
        tmp_path,
        "load",
        "orders.csv",
        "--to",
        url,
        "--table",
        "orders",
        "--map",
        "id=pk",
        "--dead-letters",
        "bad.jsonl",
    )
    assert ran.returncode == 3
    assert (
        "pk     S         key  from id" in ran.stderr and "total  N         inferred" in ran.stderr
    )
    assert "2 of 3 rows loaded into orders" in ran.stdout
    assert (
        json.loads((tmp_path / "bad.jsonl").read_text())["reason"]
        == "the key attribute pk is missing"
    )
    ran = stator(tmp_path, "export", url, "--table", "orders", "--out", "out.csv", "--json")
    report = json.loads(ran.stdout)
    assert (report["items"], report["verified"]) == (2, True)
    assert sorted((tmp_path / "out.csv").read_text().splitlines()) == [
        "a,x,1.5",
        "b,,2",
        "pk,note,total",
    ]
    ran = stator(
        tmp_path,
        "copy",
        url,
        "./here.db",
        "--table",
        "orders",
        "--to-table",
        "again",
        "--create",
        "--json",
    )
    assert json.loads(ran.stdout) | {"seconds": 0} == {
        "read": 2,
        "written": 2,
        "dropped": 0,
        "failed": 0,
        "checksum": report["checksum"],
        "verified": True,
        "write_units": 2.0,
        "seconds": 0,
        "written_before": 0,
        "dead_letters": None,
    }


def test_a_finished_export_is_resumed_to_nothing(url: str, table: Any, tmp_path: Path) -> None:
    stator(tmp_path, "load", str(lines(tmp_path / "x.jsonl", 50)), "--to", url, "--table", "orders")
    for out in ("out", "x.csv"):
        command = ("export", url, "--table", "orders", "--out", out, "--resume")
        assert "nothing was written" not in stator(tmp_path, *command).stdout
        names = sorted(path.name for path in tmp_path.rglob("*"))
        ran = stator(tmp_path, *command)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert f"{out} is complete since 20" in ran.stdout and "50 items in" in ran.stdout
        assert json.loads(stator(tmp_path, *command, "--json").stdout)["already_complete"] is True
        assert sorted(path.name for path in tmp_path.rglob("*")) == names


def test_an_entity_of_a_design_file(tmp_path: Path) -> None:
    (tmp_path / "design.py").write_text(DESIGN)
    (tmp_path / "users.csv").write_text("user_id,email\nu1,a@b\nu2,c@d\n")
    ran = stator(tmp_path, "load", "users.csv", "--to", "shop.db", "--entity", "design.py:User")
    assert (ran.returncode, "2 of 2 rows" in ran.stdout) == (0, True), ran.stderr
    ran = stator(
        tmp_path, "export", "shop.db", "--entity", "design.py:User", "--out", "users.jsonl"
    )
    rows = [json.loads(line) for line in (tmp_path / "users.jsonl").read_text().splitlines()]
    assert sorted(row["email"] for row in rows) == ["a@b", "c@d"]
    ran = stator(tmp_path, "load", "users.csv", "--to", "shop.db", "--entity", "design.py:Customer")
    assert (
        ran.returncode == 1
        and "has no entity Customer" in ran.stderr
        and "name one of User, Order" in ran.stderr
    )


def test_a_copy_says_where_the_items_that_failed_are(url: str, table: Any, tmp_path: Path) -> None:
    (tmp_path / "changes.py").write_text("def refuse(item):\n    raise ValueError('no')\n")
    table.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": "a"}}})
    command = ["copy", url, "./copy", "--table", "orders", "--create"]
    command += ["--transform", "changes:refuse"]
    ran = stator(tmp_path, *command)
    assert ran.returncode == 1
    assert "1 item failed; --dead-letters FILE keeps them with the reasons" in ran.stderr
    ran = stator(tmp_path, *command, "--dead-letters", "bad.jsonl")
    assert ran.returncode == 1
    assert "1 item failed; the reasons are in bad.jsonl" in ran.stderr
    assert json.loads((tmp_path / "bad.jsonl").read_text())["content"] == {"pk": {"S": "a"}}
    report = json.loads(stator(tmp_path, *command, "--dead-letters", "bad.jsonl", "--json").stdout)
    assert report["dead_letters"] == "bad.jsonl"


def test_a_dry_run_says_what_it_takes_and_writes_nothing(
    url: str, table: Any, tmp_path: Path
) -> None:
    lines(tmp_path / "x.jsonl", 3000)
    ran = stator(
        tmp_path,
        "load",
        "x.jsonl",
        "--to",
        url,
        "--table",
        "orders",
        "--dry-run",
        "--rate",
        "100",
        "--json",
    )
    told = json.loads(ran.stdout)
    assert (told["items"], told["write_units"], told["seconds"]) == (3000, 3000, 30.0)
    assert told["dollars"] == pytest.approx(3000 * 0.625 / 1e6)
    assert keys(table) == []


@pytest.mark.parametrize(
    "chosen",
    [
        ("--entity", "design.py:Order"),
        ("--entity", "design.py:Order", "--create"),
        ("--table", "orders", "--create", "--key", "order_id=S"),
    ],
    ids=["entity", "entity-created", "table-created"],
)
def test_a_dry_run_creates_no_folder(chosen: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "design.py").write_text(
        "from stator import Design, Entity, ident\n\n"
        "class Order(Entity):\n    order_id: str = ident()\n\n"
        'shop = Design("shop", [Order], [])\n'
    )
    (tmp_path / "x.csv").write_text("order_id\no1\no2\n")
    ran = stator(tmp_path, "load", "x.csv", "--to", "data", *chosen, "--dry-run")
    assert (ran.returncode, ran.stdout.splitlines()[0].split()) == (0, ["items", "2"]), ran.stderr
    assert " at data\n" in ran.stderr
    assert not (tmp_path / "data").exists()


def test_a_load_that_cannot_start_creates_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("order_id\no1\n")
    wrong = ("--table", "orders", "--create", "--key", "customer=S")
    ran = stator(tmp_path, "load", "x.csv", "--to", "data", *wrong)
    assert ran.returncode == 1 and "no column has that name" in ran.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("condition", "refused"),
    [
        # A refused INSERT says that the item exists; any other condition needs a second statement.
        ("attribute_not_exists(pk)", {"write_units": 300, "read_units": 100.0}),
        ("attribute_not_exists(pk) OR n < :n", {"write_units": 600, "read_units": 100.0}),
    ],
)
def test_a_dry_run_prices_refused_rows_as_the_load_pays_them(
    url: str, table: Any, tmp_path: Path, condition: str, refused: dict[str, float]
) -> None:
    """The price of the worst case is what a second load of older rows really consumes."""
    row = {"text": "x" * 2_500, "n": 1}
    rows = [{"pk": f"k{number}", **row} for number in range(100)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["load", "x.jsonl", "--to", url, "--table", "orders"]
    arguments += ["--condition", condition]
    told = json.loads(stator(tmp_path, *arguments, "--dry-run", "--json").stdout)
    assert told["items"] == 100 and told["write_units"] == 300
    assert {name: told["refused"][name] for name in refused} == refused
    assert told["refused"]["dollars"] == pytest.approx(
        refused["write_units"] * 0.625e-6 + refused["read_units"] * 0.125e-6, abs=1e-6
    )
    shown = stator(tmp_path, *arguments, "--dry-run").stdout
    assert f"refused   {refused['write_units']} WCU and 100 RCU, $0.00, if the" in shown
    plain = stator(tmp_path, "load", "x.jsonl", "--to", url, "--table", "orders", "--dry-run")
    assert "refused" not in plain.stdout
    for old in rows:
        old["text"] = "y" * 2_500  # so that they are not the stored items
    assert stator(tmp_path, *arguments).returncode == 0
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = stator(tmp_path, *arguments, "--restart", "--json")
    assert json.loads(again.stdout)["failed"] == 100
    assert json.loads(again.stdout)["consumed_units"] <= refused["write_units"]


def test_a_dry_run_finds_rows_that_lack_a_value_of_the_condition(
    url: str, table: Any, tmp_path: Path
) -> None:
    (tmp_path / "x.jsonl").write_text('{"pk": "a", "n": 1}\n{"pk": "b"}\n')
    arguments = ["load", "x.jsonl", "--to", url, "--table", "orders", "--condition", "n < :n"]
    ran = stator(tmp_path, *arguments, "--dry-run")
    assert ran.returncode == 1
    assert "x.jsonl, row 2: the condition uses :n, but the row has no attribute n" in ran.stderr


def test_a_dry_run_fails_on_bad_rows_and_names_the_first(
    url: str, table: Any, tmp_path: Path
) -> None:
    """Also on rows that can be encoded, but that DynamoDB would reject."""
    rows = [{"pk": f"k{number}"} for number in range(10)] + [{"pk": ""}, {"n": 1}]
    rows += [{"pk": "x" * 2049}, {"pk": "big", "n": "x" * 410_000}] + [{"m": 1}] * 4
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["load", "x.jsonl", "--to", url, "--table", "orders"]
    ran = stator(tmp_path, *arguments, "--dry-run")
    assert ran.returncode == 1
    assert "items     10" in ran.stdout
    assert "8 rows would fail; the first 5:" in ran.stderr
    assert "x.jsonl, row 12: the key attribute pk is missing" in ran.stderr
    ran = stator(tmp_path, *arguments, "--dry-run", "--json")
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["items"], told["failed"]) == (1, 10, 8)
    assert keys(table) == []
    ran = stator(tmp_path, *arguments, "--json")
    assert (ran.returncode, json.loads(ran.stdout)["failed"]) == (3, 8)


def test_a_load_that_is_done_is_not_repeated_because_rows_failed(
    url: str, table: Any, tmp_path: Path
) -> None:
    (tmp_path / "x.jsonl").write_text('{"pk": "a"}\n{"n": 1}\n')
    arguments = ["load", "x.jsonl", "--to", url, "--table", "orders", "--resume"]
    arguments += ["--dead-letters", "bad.jsonl"]
    assert stator(tmp_path, *arguments).returncode == 3
    table.call("DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "a"}}})
    ran = stator(tmp_path, *arguments)
    assert (ran.returncode, keys(table)) == (3, [])
    assert "already done: 1 row written into orders" in ran.stdout
    assert "1 row failed; the reasons are in bad.jsonl" in ran.stderr
    report = json.loads(stator(tmp_path, *arguments, "--json").stdout)
    assert (report["already_done"], report["failed"]) == (True, 1)
    # A new version of the file is a new load, and so is --restart.
    (tmp_path / "x.jsonl").write_text('{"pk": "b"}\n{"n": 1}\n{"n": 2}\n')
    assert (stator(tmp_path, *arguments).returncode, keys(table)) == (3, ["b"])
    (tmp_path / "x.jsonl").write_text('{"pk": "c"}\n')
    assert (stator(tmp_path, *arguments).returncode, sorted(keys(table))) == (0, ["b", "c"])
    assert not list(tmp_path.glob("*.journal"))


def test_a_design_with_other_keys_than_its_lock_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "design.py").write_text(DESIGN)
    (tmp_path / "users.csv").write_text("user_id,email\nu1,a@b\n")
    assert stator(tmp_path, "plan", "design.py", "--write").returncode == 0
    arguments = ["load", "users.csv", "--to", "shop.db", "--entity", "design.py:User"]
    assert stator(tmp_path, *arguments).returncode == 0
    rekeyed = DESIGN.replace("email: str", "email: str = ident()", 1)
    (tmp_path / "design.py").write_text(rekeyed)
    checked = stator(tmp_path, "check", "design.py")
    assert "orphans: entity User" in checked.stdout + checked.stderr
    ran = stator(tmp_path, *arguments)
    assert ran.returncode == 1
    assert "error: entity User differs from the lock file shop.design.json: its key" in ran.stderr
    assert "--new-keys" in ran.stderr
    assert stator(tmp_path, *arguments, "--dry-run").returncode == 1
    assert stator(tmp_path, *arguments, "--new-keys").returncode == 0


def test_created_tables_have_the_settings_of_the_design(url: str, tmp_path: Path) -> None:
    settings = 'settings=TableSettings(stream="NEW_IMAGE", tags={"team": "shop"}),\n)'
    text = DESIGN.replace("import Design,", "import Design, TableSettings,", 1)
    (tmp_path / "design.py").write_text(text.rstrip().removesuffix(")") + settings)
    (tmp_path / "users.csv").write_text("user_id,email\nu1,a@b\n")
    ran = stator(
        tmp_path, "load", "users.csv", "--to", url, "--entity", "design.py:User", "--create"
    )
    assert ran.returncode == 0, ran.stderr
    transport = open_transport(
        Address.parse(url),
        None,
        {"region": "us-east-1", "access_key_id": "x", "secret_access_key": "x"},
    )
    found = transport.call("DescribeTable", {"TableName": "shop"})["Table"]
    assert found["StreamSpecification"]["StreamViewType"] == "NEW_IMAGE"
    transport.call("DeleteTable", {"TableName": "shop"})
    transport.close()


def test_one_command_creates_loads_and_resumes(url: str, table: Any, tmp_path: Path) -> None:
    """As a supervisor runs it: nothing is there at first, neither the table nor a journal."""
    (tmp_path / "x.jsonl").write_text('{"id": 7, "address": {"city": "Bonn"}}\n')
    table.call("DeleteTable", {"TableName": "orders"})
    arguments = ["load", "x.jsonl", "--to", url, "--table", "orders", "--flatten", "--resume"]
    arguments += ["--create", "--key", "pk=N", "--map", "id=pk"]
    for said in ("orders does not exist yet and will be created", ""):
        ran = stator(tmp_path, *arguments)
        assert ran.returncode == 0, ran.stderr
        assert said in ran.stderr
    [item] = table.call("Scan", {"TableName": "orders"})["Items"]
    assert item == {"pk": {"N": "7"}, "address.city": {"S": "Bonn"}}


def test_a_load_outside_of_its_hours_says_that_it_waits(
    url: str, table: Any, tmp_path: Path
) -> None:
    """Ctrl-C ends the wait at once."""
    lines(tmp_path / "x.jsonl", 3)
    hour = (time.localtime().tm_hour + 3) % 24
    process = started(
        tmp_path, "load", "x.jsonl", "--to", url, "--table", "orders",
        "--between", f"{hour:02d}:00-{(hour + 1) % 24:02d}:00",
    )  # fmt: skip
    assert process.stderr is not None
    said = next(line for line in process.stderr if "outside of" in line)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert f"waiting until {hour:02d}:00" in said
    assert process.returncode == 130
    assert keys(table) == []


@pytest.mark.parametrize("condition", [None, "attribute_not_exists(pk)"])
def test_a_load_that_is_killed_is_taken_up(
    url: str, table: Any, tmp_path: Path, condition: str | None
) -> None:
    """kill -9 in the middle, twice; then everything is there once, and nothing is left behind."""
    lines(tmp_path / "x.jsonl", 12_000)
    arguments = [
        "load",
        "x.jsonl",
        "--to",
        url,
        "--table",
        "orders",
        "--shuffle",
        "1000",
        "--rate",
        "3000",
    ]
    if condition is not None:
        arguments[-2:-2] = ["--condition", condition]
    for turn in range(2):
        process = started(tmp_path, *arguments, *(["--resume"] if turn else []))
        _wait_for_position(process, tmp_path / "x.jsonl.orders.journal", 1000 * (turn + 1))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    ran = stator(tmp_path, *arguments)
    assert ran.returncode == 1 and "did not finish" in ran.stderr and "--resume" in ran.stderr
    ran = stator(tmp_path, *arguments[:-2], "--resume", "--json")
    report = json.loads(ran.stdout)
    assert (report["read"], report["written"], report["failed"]) == (12_000, 12_000, 0)
    assert report["resumed_at_row"] >= 2000
    assert sorted(keys(table)) == [f"k{number:06d}" for number in range(12_000)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.jsonl"]


def _wait_for_position(process: subprocess.Popen[str], journal: Path, row: int) -> None:
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        try:
            if json.loads(journal.read_text())["state"]["place"]["row"] >= row:
                return
        except FileNotFoundError:
            pass
        time.sleep(0.02)
    raise AssertionError("it did not come that far")


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(url: str, table: Any, tmp_path: Path) -> None:
    lines(tmp_path / "x.jsonl", 8_000)
    process = started(
        tmp_path,
        "load",
        "x.jsonl",
        "--to",
        url,
        "--table",
        "orders",
        "--rate",
        "1000",
        "--shuffle",
        "500",
    )
    _wait_for_position(process, tmp_path / "x.jsonl.orders.journal", 1)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (
        "To continue:\n  stator load x.jsonl" in told
        and "--resume" in told
        and "Traceback" not in told
    )
    ran = stator(
        tmp_path,
        "load",
        "x.jsonl",
        "--to",
        url,
        "--table",
        "orders",
        "--resume",
        "--shuffle",
        "500",
    )
    assert ran.returncode == 0, ran.stderr
    assert len(keys(table)) == 8_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["load", "x.jsonl", "--to", "{url}"], "--table NAME"),
        (["load", "x.jsonl", "--to", "{url}", "--table", "nothing"], "there is no table nothing"),
        (["load", "y.jsonl", "--to", "{url}", "--table", "orders"], "y.jsonl does not exist"),
        (
            ["load", "x.jsonl", "--to", "{url}", "--table", "orders", "--format", "xml"],
            "--format xml is unknown; choose one of",
        ),
        (
            ["load", "x.jsonl", "--to", "http://127.0.0.1:9", "--table", "orders"],
            "no connection to 127.0.0.1:9",
        ),
        (
            ["export", "http://127.0.0.1:9", "--table", "orders", "--out", "x"],
            "no connection to 127.0.0.1:9",
        ),
        (
            ["copy", "http://127.0.0.1:9", "x.db", "--table", "orders", "--create"],
            "no connection to 127.0.0.1:9",
        ),
        (
            ["copy", "{url}", "http://127.0.0.1:9", "--table", "orders", "--create"],
            "no connection to 127.0.0.1:9",
        ),
        (
            ["load", "x.jsonl", "--to", "{url}", "--table", "nothing", "--create"],
            "--create needs to know its key",
        ),
        (
            ["load", "x.jsonl", "--to", "{url}", "--table", "orders", "--between", "night"],
            "--between night is not a range of times",
        ),
        (
            ["load", "x.jsonl", "--to", "{url}", "--table", "orders", "--map", "n"],
            "cannot be parsed",
        ),
        (["export", "{url}", "--table", "orders"], "--out is missing"),
        (["export", "--out", "x"], "give either the ADDRESS"),
        (["export", "--from-snapshot", ".", "--out", "x"], "there is no export at"),
        (
            ["export", "{url}", "--table", "orders", "--out", "x.csv", "--format", "parquet"],
            "stands for the format csv",
        ),
        (["copy", "{url}", "{url}", "--table", "orders"], "are the same table"),
        (["copy", "{url}", "x.db", "--table", "orders"], "there is no folder x.db"),
        (
            ["copy", "{url}", "{url}", "--table", "orders", "--transform", "nowhere:x"],
            "there is no module nowhere",
        ),
    ],
)
def test_mistakes_are_answered_with_what_to_do(
    url: str,
    table: Any,
    tmp_path: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines(tmp_path / "x.jsonl", 3)
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with pytest.raises(SystemExit) as ended:
        main([word.format(url=url) for word in arguments])
    assert ended.value.code in (1, 2)
    assert message in capsys.readouterr().err
    assert keys(table) == []


@pytest.mark.parametrize(
    ("command", "options"),
    [("load", LoadOptions()), ("copy", CopyOptions()), ("export", ExportOptions())],
)
def test_the_defaults_of_a_command_are_those_of_its_twin(command: str, options: Any) -> None:
    module = importlib.import_module(f"stator.cli.commands.{command}")
    flags = inspect.signature(module.command).parameters
    twins = {"shuffle": "window_rows"}
    shared = {
        name: twins.get(name, name) for name in flags if hasattr(options, twins.get(name, name))
    }
    assert len(shared) > 4
    different = {
        flag: (flags[flag].default, getattr(options, name))
        for flag, name in shared.items()
        if flags[flag].default is not None and flags[flag].default != getattr(options, name)
    }
    assert different == {}


def test_a_load_serves_its_metrics(url: str, table: Any, tmp_path: Path) -> None:
    lines(tmp_path / "rows.jsonl", 3000)
    where = ("--to", url, "--table", "orders", "--region", "us-east-1")
    running = started(
        tmp_path, "load", "rows.jsonl", *where, "--rate", "100", "--metrics-port", "0"
    )
    try:
        assert running.stderr is not None
        while "serving metrics" not in (line := running.stderr.readline()):
            assert line, "the load ended without metrics"
        address = line.rpartition(" ")[2].strip()
        text = ""
        while 'stator_load_rows_written_total{table="orders"}' not in text:
            assert running.poll() is None
            with urllib.request.urlopen(address, timeout=10) as page:
                text = page.read().decode()
            time.sleep(0.1)
        assert 'stator_load_done_ratio{table="orders"}' in text
    finally:
        running.kill()
        running.communicate()
