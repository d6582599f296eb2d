"""Every example runs, on every target."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.targets import KINDS, Servers

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TAKE_AN_ADDRESS = [
    path for path in sorted(EXAMPLES.glob("*.py")) if "address: str | None" in path.read_text()
]


def test_there_are_examples() -> None:
    assert len(TAKE_AN_ADDRESS) >= 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("example", TAKE_AN_ADDRESS, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, kind: str, servers: Servers, tmp_path: Path) -> None:
    address = {"memory": "memory", "disk": str(tmp_path / "data")}.get(kind) or servers.address(
        kind
    )
    environment = {
        "AWS_ACCESS_KEY_ID": f"example{example.stem.replace('_', '')}",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    ran = subprocess.run(
        [sys.executable, str(example), address],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
