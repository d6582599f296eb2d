"""One command: every target, every workload, and a table of ratios."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import load, ourselves, targets
from bench.requests import WORKLOADS, Workload

console = Console()


def main() -> None:
    options = _options()
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; load average {os.getloadavg()[0]:.1f}"
    )
    results: dict[str, dict[str, Any]] = {}
    for target in targets.available():
        if any(word in target.name for word in options.only.split(",")):
            results[target.name] = measure(target, options)
    show(results, options.connections)
    figures = {} if options.skip_ourselves else measure_ourselves(options)
    if options.json:
        Path(options.json).write_text(json.dumps({"targets": results, "stator": figures}, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--items", type=int, default=200_000, help="items in the table (default 200,000)")
    parser.add_argument("--seconds", type=int, default=5, help="how long each workload runs")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--only", default="", help="targets whose name has one of these words, comma between")
    parser.add_argument("--workloads", default="", help="workloads whose name has one of these words, comma between")
    parser.add_argument("--large", type=int, default=2_000_000, help="the larger table of the size comparison")
    parser.add_argument("--skip-ourselves", action="store_true", help="only the comparison with peers")
    parser.add_argument("--json", help="write the figures to this file, too")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Workload]:
    return [w for w in WORKLOADS if any(word in w.name for word in options.workloads.split(","))]


def measure(target: targets.Target, options: argparse.Namespace) -> dict[str, Any]:
    console.rule(target.name)
    rates: dict[str, Any] = {}
    with targets.running(target) as server:
        rates["first answer s"] = server.first_answer_seconds
        rates["memory at start MiB"] = server.memory_mib
        load.create_table(server.port)
        rates["bulk load items/s"] = load.bulk_load(server.port, options.items)
        console.print(
            f"  loaded {options.items:,} items at {rates['bulk load items/s']:,.0f}/s; {server.memory_mib:,.0f} MiB"
        )
        rates["memory loaded MiB"] = server.memory_mib
        for workload in chosen(options):
            for connections in options.connections:
                rate = load.drive(server.port, workload, options.items, connections, options.seconds)
                rates[f"{workload.name} @{connections}"] = rate.per_second
                console.print(
                    f"  {workload.name:<22} {connections:>3} connections {rate.per_second:>10,.0f}/s "
                    f"p50 {rate.p50_us:>7,.0f} us  p99 {rate.p99_us:>8,.0f} us  errors {rate.errors}"
                )
        count, per_second = load.full_scan(server.port)
        rates["Scan items/s"] = per_second
        console.print(f"  Scan of {count:,} items: {per_second:,.0f}/s; {server.memory_mib:,.0f} MiB")
        rates["memory at end MiB"] = server.memory_mib
    return rates


def show(results: dict[str, dict[str, Any]], connections: list[int]) -> None:
    for on_disk in (False, True):
        group = {name: rates for name, rates in results.items() if name.endswith("disk") == on_disk}
        if group:
            console.print(_ratios("on disk" if on_disk else "in memory", group))


def _ratios(title: str, group: dict[str, dict[str, Any]]) -> Table:
    table = Table(title=f"{title}: answers a second, and ours against the fastest peer")
    table.add_column("workload")
    for name in group:
        table.add_column(name, justify="right")
    table.add_column("ratio", justify="right", style="bold")
    ours = next((name for name in group if name.startswith("stator")), None)
    rows = [row for row in next(iter(group.values())) if "memory" not in row and "first" not in row]
    for row in rows:
        peers = [rates[row] for name, rates in group.items() if name != ours]
        ratio = f"{group[ours][row] / max(peers):.1f}x" if ours and peers else ""
        table.add_row(row, *(f"{rates[row]:,.0f}" for rates in group.values()), ratio)
    for row in ("first answer s", "memory at start MiB", "memory loaded MiB", "memory at end MiB"):
        table.add_row(row, *(f"{rates[row]:,.2f}" for rates in group.values()), "")
    return table


def measure_ourselves(options: argparse.Namespace) -> dict[str, Any]:
    console.rule("stator in process, in memory: p50 of engine.call")
    figures: dict[str, Any] = {"p50 us": ourselves.in_process(), "import ms": ourselves.import_milliseconds()}
    for name, micros in figures["p50 us"].items():
        console.print(f"  {name:<22} {micros:>8,.1f} us")
    console.print(f"  import stator          {figures['import ms']:>8,.1f} ms")
    console.rule("Query of 20 items against the size of the table (p50)")
    sizes = (10_000, options.large)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        figures["query us by size"] = ourselves.query_against_size(sizes, folder)
    for size, micros in figures["query us by size"].items():
        console.print(f"  {size:>12,} items {micros:>8,.1f} us")
    return figures


if __name__ == "__main__":
    main()
