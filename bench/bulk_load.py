"""Compare loaders of a Parquet file with 1 KB items into one ``stator serve``.

    make bench-loading        installs the peers into an environment of their own, then runs
    python -m bench.bulk_load --items 1000000

Stator is compared with boto3's batch_writer, awswrangler and PynamoDB. Each loads the same file
into a table of its own on the same server, in turns, in its own process; the best round of each
counts. Each peer is used in its own best way. ``--peer-items`` gives peers, which take minutes,
fewer items; rates are compared. "stator load, --condition" writes the same new rows with a
condition on each, as guarded writes. Stator also loads a tenth of the items: its peak memory must
not grow with the input.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import machine, targets
from bench.bulk_load_subjects import SUBJECTS
from bench.http_load import Connection

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-peers" / "bin" / "python"
console = Console()


def write_items(path: Path, count: int, group: int = 50_000) -> None:
    """Items of 1 KB by DynamoDB's count, sorted by key like an export of another database."""
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


def is_ours(subject: str) -> bool:
    return subject.startswith("stator load")


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
    """Count the items, then delete the table, so that the next loader finds an empty server."""
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
    python = sys.executable if is_ours(subject) else str(PEERS)
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
        f"{subject:<22} {count:>9,} items  {figures['items_per_second']:>8,.0f}/s"
        f"  {figures['cpu_seconds'] / count * 1e6:>6.1f} us CPU per item"
        f"  peak {figures['peak_mib']:,.0f} MiB  load average {os.getloadavg()[0]:.1f}"
    )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.bulk_load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--items", type=int, default=1_000_000, help="items to load (default: 1,000,000)")
    add("--peer-items", type=int, help="items for the peers (default: as many as --items)")
    add("--rounds", type=int, default=1, help="rounds of each loader; best counts (default: 1)")
    add("--only", default="", help="loaders to run, as parts of their names: stator,boto3")
    add("--json", metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    peer_items = options.peer_items or options.items
    console.print(machine.describe())
    words = options.only.split(",")
    names = [
        name
        for name in SUBJECTS
        if (is_ours(name) or PEERS.exists()) and any(word in name for word in words)
    ]
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
                    count = options.items if is_ours(name) else peer_items
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
    table = Table(title="1 KB items from Parquet into the same server")
    for heading in ("", "items/s", "CPU us/item", "peak MiB", "stator is"):
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
            f"peak memory of Stator: {small['peak_mib']:,.0f} MiB for {items // 10:,} items,"
            f" {ours['peak_mib']:,.0f} MiB for {items:,}"
        )


if __name__ == "__main__":
    main()
