"""One command: every target, every workload, and a table of ratios."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import http_load, internals, targets
from bench.requests import WORKLOADS, Workload

console = Console()


def main() -> None:
    options = _options()
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; load average {os.getloadavg()[0]:.1f}"
    )
    chosen_targets = [
        t for t in targets.available() if any(word in t.name for word in options.only.split(","))
    ]
    results: dict[str, dict[str, Any]] = {}
    # Those in memory together, then those on disk: a peer is compared with what ran in the same minute.
    for on_disk in (False, True):
        results |= measure(
            [target for target in chosen_targets if target.on_disk == on_disk], options
        )
    show(results, options.connections)
    figures = {} if options.skip_internals else measure_internals(options)
    if options.json:
        Path(options.json).write_text(json.dumps({"targets": results, "stator": figures}, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--items", type=int, default=200_000, help="items in the table (default 200,000)"
    )
    parser.add_argument("--seconds", type=int, default=3, help="how long each workload runs")
    parser.add_argument(
        "--rounds", type=int, default=2, help="how often each is run; the best round counts"
    )
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16])
    parser.add_argument(
        "--only", default="", help="targets whose name has one of these words, comma between"
    )
    parser.add_argument(
        "--workloads", default="", help="workloads whose name has one of these words, comma between"
    )
    parser.add_argument(
        "--large", type=int, default=2_000_000, help="the larger table of the size comparison"
    )
    parser.add_argument(
        "--skip-internals", action="store_true", help="only the comparison with peers"
    )
    parser.add_argument("--json", help="write the figures to this file, too")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Workload]:
    return [w for w in WORKLOADS if any(word in w.name for word in options.workloads.split(","))]


def measure(group: list[targets.Target], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """All targets of a group side by side: each workload on one after the other, several rounds, the best round counts.

    A shared machine has fast and slow minutes; in turns, they meet every target alike. Servers that are not being asked
    are idle.
    """
    found: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        servers = [stack.enter_context(targets.running(target)) for target in group]
        for server in servers:
            found[server.target.name] = prepare(server, options)
        for workload in chosen(options):
            for connections in options.connections:
                for _ in range(options.rounds):
                    for server in servers:
                        _drive(server, workload, connections, options, found[server.target.name])
        for server in servers:
            rates = found[server.target.name]
            rates["Scan items/s"], rates["memory at end MiB"] = _scan(server), server.memory_mib
    return found


def _scan(server: targets.Running) -> float:
    """Items a second; nought for a peer that does not answer a page within two minutes."""
    try:
        count, per_second = http_load.full_scan(server.port)
    except (OSError, RuntimeError) as problem:
        console.print(f"{server.target.name:<24} Scan: {problem}")
        return 0.0
    console.print(f"{server.target.name:<24} Scan of {count:,} items: {per_second:,.0f}/s")
    return per_second


def prepare(server: targets.Running, options: argparse.Namespace) -> dict[str, Any]:
    rates: dict[str, Any] = {
        "first answer s": server.first_answer_seconds,
        "memory at start MiB": server.memory_mib,
    }
    http_load.create_table(server.port)
    rates["bulk load items/s"] = http_load.bulk_load(server.port, options.items)
    rates["memory loaded MiB"] = server.memory_mib
    console.print(
        f"{server.target.name:<24} loaded {options.items:,} items at {rates['bulk load items/s']:,.0f}/s; "
        f"{server.memory_mib:,.0f} MiB"
    )
    return rates


def _drive(
    server: targets.Running,
    workload: Workload,
    connections: int,
    options: argparse.Namespace,
    rates: dict[str, Any],
) -> None:
    rate = http_load.drive(server.port, workload, options.items, connections, options.seconds)
    row = f"{workload.name} @{connections}"
    rates[row] = max(rates.get(row, 0.0), rate.per_second)
    console.print(
        f"{server.target.name:<24} {row:<26} {rate.per_second:>10,.0f}/s p50 {rate.p50_us:>7,.0f} us "
        f"p99 {rate.p99_us:>8,.0f} us" + (f"  {rate.errors} errors" if rate.errors else "")
    )


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


def measure_internals(options: argparse.Namespace) -> dict[str, Any]:
    console.rule("stator in process, in memory: p50 of engine.call")
    figures: dict[str, Any] = {
        "p50 us": internals.in_process(),
        "import ms": internals.import_milliseconds(),
    }
    for name, micros in figures["p50 us"].items():
        console.print(f"  {name:<22} {micros:>8,.1f} us")
    console.print(f"  import stator          {figures['import ms']:>8,.1f} ms")
    console.rule("Query of 20 items against the size of the table (p50)")
    sizes = (10_000, options.large)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        by_size = internals.query_against_size(sizes, folder)
    figures["query us by size"] = {size: asdict(times) for size, times in by_size.items()}
    for size, times in by_size.items():
        console.print(
            f"  {size:>12,} items {times.first:>8,.1f} us when first read {times.again:>8,.1f} us when read again"
        )
    return figures


if __name__ == "__main__":
    main()
