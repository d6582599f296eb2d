"""Every example runs, on every target."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import warm_python
from tests.targets import KINDS, Servers

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
KEPT = ("PATH", "PYTHONPATH")
TAKE_AN_ADDRESS = [
    path for path in sorted(EXAMPLES.glob("*.py")) if "def main(address: str" in path.read_text()
]


def test_every_example_takes_an_address_except_the_one_that_starts_a_server() -> None:
    others = {path.stem for path in EXAMPLES.glob("*.py") if path not in TAKE_AN_ADDRESS}
    assert others == {"shop_demo"}


def test_the_shop_survives_the_death_of_its_server() -> None:
    ran = run(EXAMPLES / "shop_demo.py")
    assert ran.returncode == 0, ran.stderr
    assert "everything is still there" in ran.stdout


def run(example: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {each: os.environ[each] for each in KEPT if each in os.environ}
    return warm_python.run(str(example), *arguments, env=environment | kept, timeout=120)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("example", TAKE_AN_ADDRESS, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, kind: str, servers: Servers, tmp_path: Path) -> None:
    address = {"memory": "memory", "disk": str(tmp_path / "data")}.get(kind) or servers.address(
        kind
    )
    ran = run(
        example,
        address,
        AWS_ACCESS_KEY_ID=f"example{example.stem.replace('_', '')}",
        AWS_SECRET_ACCESS_KEY="x",
        AWS_DEFAULT_REGION="us-east-1",
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
