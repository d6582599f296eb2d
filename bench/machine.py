"""The machine a benchmark runs on, in one line."""

from __future__ import annotations

import os
import platform


def describe() -> str:
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; "
        f"load average {os.getloadavg()[0]:.1f}"
    )
