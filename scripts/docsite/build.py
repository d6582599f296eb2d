"""Builds the site: stages the pages in ``build/docs`` and runs the generator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from docsite import api_pages, command_pages, llms
from docsite.built_site import faults
from docsite.docstrings import to_markdown
from docsite.markdown import for_generator, summary, title
from docsite.navigation import ordered, placed
from docsite.sources import PICTURES, ROOT, address_of, example_pages, written_pages

ASSETS: Final = Path(__file__).parent / "assets"
# Draws diagrams; scripts/install-mermaid.sh puts it here.
MERMAID: Final = ROOT / ".mermaid/mermaid.min.js"


def main() -> int:
    site = build(ROOT / "build")
    found = faults(site)
    for fault in found:
        print(fault, file=sys.stderr)
    if found:
        return 1
    shown = site.relative_to(ROOT)
    print(f"wrote {shown}; to read it: python -m http.server --directory {shown}")
    return 0


def build(folder: Path) -> Path:
    """Build the site in ``folder/site``, and return its path. ``folder/docs`` has its sources."""
    pages = all_pages()
    tree, left = placed(pages)
    if left:
        raise SystemExit(f"not in scripts/docsite/navigation.py: {', '.join(left)}")
    _stage(pages, folder / "docs")
    config = folder / "mkdocs.yml"
    config.write_text(json.dumps(_config(tree), indent=2), encoding="utf-8")  # JSON is YAML
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    generator = Path(sys.executable).with_name("zensical")
    subprocess.run(  # noqa: S603
        [generator, "build", "--clean", "--strict", "-f", config],
        env={**os.environ, "NO_COLOR": "1"},
        check=True,
    )
    llms.write(site, pages, ordered(pages))
    return site


def all_pages() -> dict[str, str]:
    """The Markdown of every page, written or generated, by its path below the site's root."""
    written = written_pages()
    examples = example_pages()
    targets = {**written, **examples}
    pages = {}
    for file, address in written.items():
        text = file.read_text(encoding="utf-8")
        pages[address] = for_generator(text, _translator(file, address, targets))
    for file, address in examples.items():
        pages[address] = _notebook(file) if file.suffix == ".ipynb" else _program(file)
    pages |= api_pages.pages()
    pages |= command_pages.pages()
    for index, heading, intro in _LISTS:
        if index not in pages:
            pages[index] = _list_page(index, heading, intro, pages)
    return pages


# Index pages of folders that have none: the page, its title, its introduction.
_LISTS: Final = (
    ("guides/index.md", "Guides by task", "Each guide solves one task. Its examples run."),
    ("decisions/index.md", "Decisions", "Each page states a choice, its options and its cost."),
    (
        "reference/index.md",
        "Reference",
        (
            "Generated from the sources: every public name and every command.\n\n"
            "- [Python](python/index.md): modules, classes, functions and errors\n"
            "- [Command line](commands/index.md): commands, options, exit codes"
        ),
    ),
)


def _list_page(index: str, heading: str, intro: str, pages: dict[str, str]) -> str:
    folder = index.rpartition("/")[0]
    lines = [f"# {heading}", "", intro, ""]
    if folder == "reference":
        return "\n".join(lines)
    in_order = [page for _, section in ordered(pages) for page in section]
    inside = [page for page in in_order if page.startswith(f"{folder}/")]
    for page in inside:
        name = page.removeprefix(f"{folder}/")
        lines.append(f"- [{title(pages[page])}]({name}): {summary(pages[page])}")
    return "\n".join(lines) + "\n"


def _translator(file: Path, address: str, targets: dict[Path, str]) -> Any:
    """Turns a link of ``file`` into one of the page at ``address``."""

    def translate(target: str) -> str:
        if "://" in target or target.startswith(("#", "mailto:")):
            return target
        path, _, anchor = target.partition("#")
        page = address_of((file.parent / path).resolve(), targets)
        if page is None:
            raise LookupError(f"{file.relative_to(ROOT)}: {target} is not a page of the site")
        relative = os.path.relpath(page, Path(address).parent or ".")
        return quote(relative) + (f"#{anchor}" if anchor else "")

    return translate


def _program(file: Path) -> str:
    """An example program as a page, headed by the first line of its docstring."""
    code = file.read_text(encoding="utf-8")
    doc = code.removeprefix('"""').partition('"""')[0] if code.startswith('"""') else file.stem
    heading, _, rest = doc.strip().partition("\n")
    return (
        f"# {heading.rstrip('.:')}\n\n{to_markdown(rest, lambda _: None)}\n\n```python\n{code}```\n"
    )


def _notebook(file: Path) -> str:
    """A notebook as a page: its texts and its code, without outputs."""
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    return "\n\n".join(parts) + "\n"


def _stage(pages: dict[str, str], folder: Path) -> None:
    """Write what the generator reads: pages, styles and scripts."""
    shutil.rmtree(folder, ignore_errors=True)
    for address, text in pages.items():
        page = folder / address
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    for asset in ASSETS.iterdir():
        shutil.copy(asset, folder / asset.name)
    shutil.copytree(PICTURES, folder / PICTURES.name)
    if MERMAID.is_file():
        shutil.copy(MERMAID, folder / MERMAID.name)
    else:
        print("without mermaid, diagrams are shown as text", file=sys.stderr)


def _config(tree: list[Any]) -> dict[str, Any]:
    """The generator's settings. Fonts and scripts come from the site itself."""
    return {
        "site_name": "Stator",
        "site_description": "Data platforms on DynamoDB, in Python",
        "docs_dir": "docs",
        "site_dir": "site",
        "use_directory_urls": False,  # pages open from a disk too
        "theme": {
            "name": "material",
            "font": False,
            "features": [
                "content.code.copy",
                "navigation.footer",
                "navigation.indexes",
                "navigation.tabs",
                "navigation.top",
                "search.highlight",
                "toc.follow",
            ],
            "palette": [
                _palette("(prefers-color-scheme)", None, "sun-moon", "light colours"),
                _palette("(prefers-color-scheme: light)", "default", "sun", "dark colours"),
                _palette("(prefers-color-scheme: dark)", "slate", "moon", "the system's colours"),
            ],
            "icon": {"logo": "lucide/layers"},
        },
        "plugins": ["search"],
        "extra": {"generator": False},
        "extra_css": ["site.css"],
        "extra_javascript": ["diagrams.js"],
        "markdown_extensions": [
            "attr_list",
            "tables",
            {"toc": {"permalink": True, "toc_depth": 3}},
            {"pymdownx.highlight": {"pygments_lang_class": True}},
            {"pymdownx.superfences": {"custom_fences": [_DIAGRAMS]}},
        ],
        "nav": tree,
    }


# diagrams.js draws them. The generator would do so for the class "mermaid", from another host.
_DIAGRAMS: Final = {
    "name": "mermaid",
    "class": "diagram-source",
    "format": "pymdownx.superfences.fence_code_format",
}


def _palette(media: str, scheme: str | None, icon: str, following: str) -> dict[str, Any]:
    toggle = {"icon": f"lucide/{icon}", "name": f"Switch to {following}"}
    return {"media": media, "toggle": toggle} | ({"scheme": scheme} if scheme else {})
