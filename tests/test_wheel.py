"""The wheel: pure Python, or with the hot modules compiled when asked."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PUT_AND_GET = """
from stator.engine import Engine, engine
with Engine.open() as opened:
    name = {"TableName": "things"}
    opened.call("CreateTable", name | {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    })
    opened.call("PutItem", name | {"Item": {"pk": {"S": "a"}, "n": {"N": "1"}}})
    print(engine.__file__, opened.call("GetItem", name | {"Key": {"pk": {"S": "a"}}}))
"""


def build_wheel(folder: Path, compiled: str) -> zipfile.ZipFile:
    command = [
        sys.executable,
        "-m",
        "uv",
        "build",
        "--quiet",
        "--wheel",
        "--out-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, env={**os.environ, "STATOR_COMPILE": compiled}, check=True, timeout=900)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize(("compiled", "suffix"), [("0", ".py"), ("1", ".so")])
def test_a_wheel_puts_and_gets(tmp_path: Path, compiled: str, suffix: str) -> None:
    with build_wheel(tmp_path, compiled) as wheel:
        extensions = [name for name in wheel.namelist() if name.endswith(".so")]
        assert bool(extensions) == (compiled == "1")
        wheel.extractall(tmp_path / "installed")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    done = subprocess.run(
        [sys.executable, "-c", PUT_AND_GET],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    path, _, answer = done.stdout.partition(" ")
    assert path.startswith(str(tmp_path)) and path.endswith(suffix)
    assert answer.strip() == "{'Item': {'pk': {'S': 'a'}, 'n': {'N': '1'}}}"
