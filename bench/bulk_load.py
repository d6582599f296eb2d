"""Loading a Parquet file of 1 KB items into one ``stator serve``: Stator beside boto3's batch_writer, awswrangler and PynamoDB.

    python -m bench.bulk_load --items 1000000        (or `make bench-loading`, which installs the peers into an environment of their own)

Each loads the same file into a table of its own in the same server, one after the other in turns, in a process of its own; the best round of each
counts. A peer is given its own best way to do it. Peers may be given fewer items (``--peer-items``), for they take minutes; rates are compared.
Stator is also run with a tenth of the items: its peak memory must not grow with the input.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import targets
from bench.http_load import Connection
from bench.bulk_load_subjects import SUBJECTS

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-peers" / "bin" / "python"
console = Console()


def write_items(path: Path, count: int, group: int = 50_000) -> None:
    """Items of 1 KB by DynamoDB's own count, sorted by their key, as exports of other databases are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, count, group):
        numbers = range(start, min(start + group, count))
        table = pa.table(
            {
                "pk": [f"ROUTER#{number // 50:08d}#{number % 50:02d}" for number in numbers],
                "router_id": [f"{number // 50:08d}" for number in numbers],
                "isp": [f"isp-{number % 37}" for number in numbers],
                "tested_at": [
                    f"2026-10-{number % 28 + 1:02d}T10:00:00.{number:06d}"[:26] + "Z"
                    for number in numbers
                ],
                "latency_us": [number * 7919 % 90_000 for number in numbers],
                "loss_ppm": [number * 104_729 % 1_000 for number in numbers],
                "passed": [number % 9 != 0 for number in numbers],
                "firmware": ["7.29.1-stable"] * len(numbers),
                "trace": [
                    f"{number:x}".ljust(830, "abcdefghij"[number % 10]) for number in numbers
                ],
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def fresh_table(port: int, name: str) -> None:
    connection = Connection(port)
    connection.send(
        "CreateTable",
        {
            "TableName": name,
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )


def count_and_drop(port: int, name: str) -> int:
    """How many items are there, counted; then the table goes, so that the next one finds the server as this one did."""
    connection = Connection(port)
    found, request = 0, {"TableName": name, "Select": "COUNT"}
    while True:
        page = json.loads(connection.send("Scan", request))
        found += page["Count"]
        if "LastEvaluatedKey" not in page:
            break
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    connection.send("DeleteTable", {"TableName": name})
    return found


def run(subject: str, port: int, path: Path, count: int) -> dict[str, float] | None:
    table = "load-" + "".join(letter if letter.isalnum() else "-" for letter in subject)
    fresh_table(port, table)
    python = sys.executable if subject == "stator load" else str(PEERS)
    command = [
        python,
        str(ROOT / "bench" / "bulk_load_subjects.py"),
        subject,
        f"http://127.0.0.1:{port}",
        table,
        str(path),
    ]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = count_and_drop(port, table)
    if ran.returncode or found != count:
        last = (ran.stderr.strip().splitlines() or ["no error"])[-1]
        console.print(f"[red]{subject} failed with {found:,} of {count:,} items:[/] {last}")
        return None
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    figures["items_per_second"] = count / figures["seconds"]
    console.print(
        f"{subject:<22} {count:>9,} items  {figures['items_per_second']:>8,.0f}/s  {figures['cpu_seconds'] / count * 1e6:>6.1f} us of CPU "
        f"an item  peak {figures['peak_mib']:,.0f} MiB  load average {os.getloadavg()[0]:.1f}"
    )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bulk_load", description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument(
        "--peer-items", type=int, help="for the peers; as many as --items by default"
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--only", default="", help="subjects whose name has one of these words, comma between"
    )
    parser.add_argument("--json", help="write the figures to this file, too")
    options = parser.parse_args()
    peer_items = options.peer_items or options.items
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; load average {os.getloadavg()[0]:.1f}"
    )
    names = [
        name for name in SUBJECTS
        if (name == "stator load" or PEERS.exists()) and any(word in name for word in options.only.split(","))
    ]  # fmt: skip
    best: dict[str, dict[str, float]] = {}
    small: dict[str, float] | None = None
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        sizes = sorted({options.items, peer_items, max(1, options.items // 10)})
        files = {size: Path(folder) / f"{size}.parquet" for size in sizes}
        for size, path in files.items():
            write_items(path, size)
        target = next(
            each
            for each in targets.available()
            if each.name.startswith("stator") and not each.on_disk
        )
        with targets.running(target) as server:
            for _ in range(options.rounds):
                for name in names:
                    count = options.items if name == "stator load" else peer_items
                    if name == "stator load":
                        small = (
                            run(
                                name,
                                server.port,
                                files[max(1, options.items // 10)],
                                max(1, options.items // 10),
                            )
                            or small
                        )
                    figures = run(name, server.port, files[count], count)
                    if (
                        figures
                        and figures["items_per_second"]
                        > best.get(name, {"items_per_second": 0.0})["items_per_second"]
                    ):
                        best[name] = figures
    show(best, small, options.items)
    if options.json:
        Path(options.json).write_text(json.dumps({"best": best, "a tenth": small}, indent=1))


def show(best: dict[str, dict[str, float]], small: dict[str, float] | None, items: int) -> None:
    ours = best.get("stator load")
    table = Table(title="items of 1 KB from Parquet into the same server")
    for heading in ("", "items/s", "CPU us an item", "peak MiB", "stator is"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, figures in sorted(best.items(), key=lambda pair: -pair[1]["items_per_second"]):
        ratio = (
            ""
            if ours is None or figures is ours
            else f"{ours['items_per_second'] / figures['items_per_second']:.1f}x"
        )
        per_item = 1e6 * figures["cpu_seconds"] / (figures["items_per_second"] * figures["seconds"])
        table.add_row(
            name,
            f"{figures['items_per_second']:,.0f}",
            f"{per_item:.1f}",
            f"{figures['peak_mib']:,.0f}",
            ratio,
        )
    console.print(table)
    if ours is not None and small is not None:
        console.print(
            f"stator's peak memory: {small['peak_mib']:,.0f} MiB for {items // 10:,} items, {ours['peak_mib']:,.0f} MiB for {items:,}"
        )


if __name__ == "__main__":
    main()
