"""A name in a cell of a table: wrapped between its words, never inside one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

_WORD: Final = re.compile(r"[^_\-./:# ]*[_\-./:# ]*")
"""A word of a name, with the characters after which a line may end."""


@dataclass(frozen=True, slots=True)
class NameCell:
    """A name that is wrapped after underscores, dots, hyphens, slashes and blanks.

    A word that is wider than its column ends with an ellipsis.
    """

    name: str
    style: str = ""

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        most = options.max_width
        longest = max(cell_len(word.rstrip()) for word in self._words())
        return Measurement(min(longest, most), min(cell_len(self.name), most))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines(options.max_width):
            yield Text(line, self.style, no_wrap=True, overflow="ellipsis")

    def _words(self) -> list[str]:
        return [word for word in _WORD.findall(self.name) if word] or [""]

    def _lines(self, width: int) -> Iterator[str]:
        line = ""
        for word in self._words():
            if line and cell_len((line + word).rstrip()) > width:
                yield line.rstrip()
                line = ""
            line += word
        yield line.rstrip()
