"""The progress bar of commands that take a while."""

from __future__ import annotations

import sys
import time
from typing import Any

from stator.cli.output import rich_console


class ProgressBar:
    """A progress bar on stderr. Shows nothing if stderr is not a terminal.

    The bar appears after ``after_seconds``, so quick work shows no bar.
    """

    def __init__(self, label: str, *, after_seconds: float = 0.0) -> None:
        self._label = label
        self._starts = time.monotonic() + after_seconds
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        self._start_if_due()
        return self

    def _start_if_due(self) -> None:
        if self._progress is None and sys.stderr.isatty() and time.monotonic() >= self._starts:
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeRemainingColumn,
            )

            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[facts]}"),
                TimeRemainingColumn(),
                console=rich_console(err=True, markup=True),
                transient=True,
            )
            self._progress.start()
            self._task = self._progress.add_task(self._label, total=1.0, facts="")

    def show(self, share: float, facts: str) -> None:
        self._start_if_due()
        if self._progress is not None:
            self._progress.update(self._task, completed=share, facts=facts)

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()
