"""Run every workload on every server, and print a table with the ratio to the fastest peer.

Servers in memory are compared with each other, and so are servers on disk. Then Stator alone is
measured: calls in process, the time to import it, and a Query against tables of different sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import http_load, internals, machine, targets
from bench.requests import WORKLOADS, Workload

console = Console()


def main() -> None:
    options = _options()
    console.print(machine.describe())
    chosen_targets = [
        t for t in targets.available() if any(word in t.name for word in options.only.split(","))
    ]
    results: dict[str, dict[str, Any]] = {}
    # In memory first, then on disk, so that peers are compared within the same few minutes.
    for on_disk in (False, True):
        results |= measure(
            [target for target in chosen_targets if target.on_disk == on_disk], options
        )
    show(results, options.connections)
    figures = {} if options.skip_internals else measure_internals(options)
    if options.json:
        Path(options.json).write_text(json.dumps({"targets": results, "stator": figures}, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--items", type=int, default=200_000, help="items in the table (default: 200,000)")
    add("--seconds", type=int, default=3, help="duration of each round (default: 3)")
    add("--rounds", type=int, default=2, help="rounds of each workload; best counts (default: 2)")
    add(
        "--connections",
        type=int,
        nargs="+",
        default=[1, 16],
        help="concurrent connections to test with (default: 1 16)",
    )
    add("--only", default="", help="servers to run, as parts of their names: stator,moto")
    add("--workloads", default="", help="workloads to run, as parts of their names: Get,Query")
    add(
        "--large",
        type=int,
        default=2_000_000,
        help="items in the larger table of the size comparison (default: 2,000,000)",
    )
    add("--skip-internals", action="store_true", help="only compare with peers")
    add("--json", metavar="FILE", help="also write the figures to FILE")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Workload]:
    return [w for w in WORKLOADS if any(word in w.name for word in options.workloads.split(","))]


def measure(group: list[targets.Target], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Measure all servers of a group in turns; the best round of each counts.

    A shared machine has fast and slow minutes. Taking turns exposes every server to both. Servers
    that are not being measured are idle.
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
    """Items per second, or 0 for a peer that does not answer a page within two minutes."""
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
        f"{server.target.name:<24} loaded {options.items:,} items"
        f" at {rates['bulk load items/s']:,.0f}/s; {server.memory_mib:,.0f} MiB"
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
        f"{server.target.name:<24} {row:<26} {rate.per_second:>10,.0f}/s"
        f" p50 {rate.p50_us:>7,.0f} us p99 {rate.p99_us:>8,.0f} us"
        + (f"  {rate.errors} errors" if rate.errors else "")
    )


def show(results: dict[str, dict[str, Any]], connections: list[int]) -> None:
    for on_disk in (False, True):
        group = {name: rates for name, rates in results.items() if name.endswith("disk") == on_disk}
        if group:
            console.print(_ratios("on disk" if on_disk else "in memory", group))


def _ratios(title: str, group: dict[str, dict[str, Any]]) -> Table:
    table = Table(title=f"{title}: responses per second; ratio of Stator to the fastest peer")
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
        "p50 us by throughput": internals.throughput_modes(),
        "import ms": internals.import_milliseconds(),
    }
    for name, micros in figures["p50 us"].items():
        console.print(f"  {name:<22} {micros:>8,.1f} us")
    off = figures["p50 us by throughput"]["off"]
    for mode, by_name in figures["p50 us by throughput"].items():
        for name, micros in by_name.items():
            more = micros / off[name] - 1
            console.print(f"  {name}, throughput {mode:<9} {micros:>8,.1f} us {more:>+7.0%}")
    console.print(f"  import stator          {figures['import ms']:>8,.1f} ms")
    console.rule("Query of 20 items against the size of the table (p50)")
    sizes = (10_000, options.large)
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        by_size = internals.query_against_size(sizes, folder)
    figures["query us by size"] = {size: asdict(times) for size, times in by_size.items()}
    for size, times in by_size.items():
        console.print(
            f"  {size:>12,} items {times.first:>8,.1f} us at first read"
            f" {times.again:>8,.1f} us when read again"
        )
    return figures


if __name__ == "__main__":
    main()
