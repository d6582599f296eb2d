"""Checks the built site: links and anchors lead somewhere, and pages load only their own files."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

# What a browser loads by itself when it shows a page.
_LOADED: Final = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "link": "href",
}
_FOREIGN_STYLE: Final = re.compile(r"""url\(\s*["']?(?:https?:)?//|@import\s+["'](?:https?:)?//""")


class _Page(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        loaded = _LOADED.get(tag)
        if loaded in values and values.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(values[loaded])


def faults(site: Path) -> list[str]:
    """What is wrong with a built site, one line each."""
    pages = {file: _read(file) for file in sorted(site.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        name = file.relative_to(site)
        if name.name == "404.html":  # served for any path, so its links start at the root
            continue
        found += [f"{name}: {each}" for each in _broken(file, page, pages)]
        foreign = [each for each in page.loaded if urlsplit(each).netloc]
        found += [f"{name} loads {each} from another host" for each in foreign]
    styles = [file for file in sorted(site.rglob("*.css")) if _FOREIGN_STYLE.search(_text(file))]
    return [*found, *(f"{file.relative_to(site)} loads from another host" for file in styles)]


def _broken(file: Path, page: _Page, pages: dict[Path, _Page]) -> list[str]:
    broken = []
    for link in [*page.links, *page.loaded]:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if target.is_dir():
            target /= "index.html"
        if not target.is_file():
            broken.append(f"{link} does not exist")
        elif parts.fragment and target in pages:
            anchor = unquote(parts.fragment)
            if anchor not in pages[target].anchors and not anchor.startswith("__"):
                broken.append(f"{link} has no such anchor")
    return broken


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(_text(file))
    return page


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
