"""Which files of the project become pages of the site, and at which address."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
EXAMPLES: Final = ROOT / "examples"
PICTURES: Final = DOCS / "pictures"
"""Pages show its files; the site has them in a folder of the same name."""

# The files outside docs/ that are pages, and where the site has them.
_OUTSIDE_DOCS: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture/index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples/index.md",
}


def written_pages() -> dict[Path, str]:
    """The Markdown files people write, and their paths below the site's root."""
    pages = {ROOT / name: address for name, address in _OUTSIDE_DOCS.items()}
    for file in sorted(DOCS.rglob("*.md")):
        address = file.relative_to(DOCS).as_posix()
        folder, _, name = address.rpartition("/")
        pages[file] = f"{folder}/index.md" if name == "README.md" else address
    return pages


def example_pages() -> dict[Path, str]:
    """The example programs and notebooks, and the pages that show them."""
    files = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")])
    return {file: f"examples/{file.stem}.md" for file in files}


def address_of(target: Path, pages: dict[Path, str]) -> str | None:
    """The page or picture for a link to ``target``, a file or folder; None if the site has none."""
    if target.is_relative_to(PICTURES) and target.is_file():
        return f"{PICTURES.name}/{target.name}"
    if target.is_dir():
        inside = [address for file, address in pages.items() if file.is_relative_to(target)]
        return f"{target.name}/index.md" if inside else None
    return pages.get(target)
