"""``from stator.testing import ...``: documented and loaded on use."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import stator.testing


def test_every_public_name_has_a_docstring_and_a_place_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "testing.md").read_text()
    used = {"wire", "faulty", "Faults", "run_schedules", "kill_points", "split_shard", "damage"}
    assert all(name in guide for name in used)
    for name in stator.testing.__all__:
        assert getattr(stator.testing, name).__doc__, name


def test_the_plugin_of_every_pytest_run_loads_neither_engine_nor_data_layer() -> None:
    code = "import sys, stator.testing.plugin; print([m for m in sys.modules if 'stator.' in m])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(ast.literal_eval(ran.stdout)) == [
        "stator.clock",
        "stator.lazy_names",
        "stator.testing",
        "stator.testing.plugin",
    ]
