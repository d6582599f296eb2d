"""Compare Python clients on a server that answers at once: bulk puts and single gets.

    make bench-clients        installs the peers into an environment of their own, then runs
    python -m bench.clients

Each client runs in its own process, in turns and for several rounds; the best round of each counts,
so that a slow minute of a shared machine does not hit one client alone. Operations per second of
the client's own CPU time say what a core can carry; p50 is the time of one get as the caller sees
it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import machine
from bench.client_subjects import SUBJECTS

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-peers" / "bin" / "python"
OURS = ("stator", "stator, asyncio")
console = Console()


@contextmanager
def null_server() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "bench.null_server", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def run(name: str, url: str, items: int, gets: int) -> dict[str, float] | None:
    python = sys.executable if name in OURS else str(PEERS)
    command = [python, str(ROOT / "bench" / "client_subjects.py"), name, url, str(items), str(gets)]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        console.print(f"[red]{name} failed:[/] {ran.stderr.strip().splitlines()[-1]}")
        return None
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.clients",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rounds", type=int, default=3, help="rounds of each client; best counts (default: 3)")
    add("--items", type=int, default=20_000, help="items to put (default: 20,000)")
    add("--gets", type=int, default=3_000, help="items to get (default: 3,000)")
    add("--json", metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    if not PEERS.exists():
        console.print("the peers are not installed; run `make bench-clients`. Showing Stator alone")
    names = [name for name in SUBJECTS if name in OURS or PEERS.exists()]
    console.print(machine.describe())
    best: dict[str, dict[str, float]] = {}
    with null_server() as url:
        for _ in range(options.rounds):
            for name in names:
                figures = run(name, url, options.items, options.gets)
                if figures is not None:
                    best[name] = _better(best.get(name), figures)
    show(best)
    if options.json:
        Path(options.json).write_text(json.dumps(best, indent=1))


def _better(left: dict[str, float] | None, right: dict[str, float]) -> dict[str, float]:
    if left is None:
        return right
    return {name: (min if name == "p50_us" else max)(left[name], right[name]) for name in right}


def show(best: dict[str, dict[str, float]]) -> None:
    table = Table(
        title="operations per second of client CPU; x: ratio to boto3's batch_writer and get_item"
    )
    for heading in ("client", "1 KB puts", "x", "gets", "x", "p50 of a get"):
        table.add_column(heading, justify="left" if heading == "client" else "right")
    base: Any = best.get("boto3 batch_writer")
    for name, figures in best.items():
        puts, gets = figures["put_per_cpu_second"], figures["get_per_cpu_second"]
        table.add_row(
            name,
            f"{puts:,.0f}",
            f"{puts / base['put_per_cpu_second']:.1f}" if base else "",
            f"{gets:,.0f}",
            f"{gets / base['get_per_cpu_second']:.1f}" if base else "",
            f"{figures['p50_us']:.0f} us",
        )
    console.print(table)


if __name__ == "__main__":
    main()
