"""``llms.txt``, ``llms-full.txt`` and each page's Markdown, for programs that read the site.

The form is llmstxt.org's: a title, a summary, and sections of links with a note each. Links are
relative to the file, because the site may be served anywhere.
"""

from __future__ import annotations

import re
from pathlib import Path

from docsite.markdown import summary, title


def write(site: Path, pages: dict[str, str], sections: list[tuple[str, list[str]]]) -> None:
    """Write the files into a built site."""
    plain = {address: _plain(text) for address, text in pages.items()}
    for address, text in plain.items():
        target = site / address
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (site / "llms.txt").write_text(_index(plain, sections), encoding="utf-8")
    everything = [
        f"<!-- {page} -->\n{plain[page].strip()}\n" for _, each in sections for page in each
    ]
    (site / "llms-full.txt").write_text("\n".join(everything), encoding="utf-8")


def _index(pages: dict[str, str], sections: list[tuple[str, list[str]]]) -> str:
    lines = [f"# {title(pages['index.md'])}", ""]
    lines += [f"> {summary(pages['index.md'])}", ""]
    lines += ["[llms-full.txt](llms-full.txt) holds all pages in one file.", ""]
    for name, addresses in sections:
        lines += [f"## {name}", ""]
        for address in addresses:
            note = summary(pages[address])
            lines.append(f"- [{title(pages[address])}]({address})" + (f": {note}" if note else ""))
        lines.append("")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Markdown without the marks that only the generator reads."""
    return re.sub(r"^(#{1,6} .*?) \{#[^}]*\}\n?$", r"\1", text, flags=re.MULTILINE)
