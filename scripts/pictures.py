"""The pictures of the README: its program's plan in a terminal, and its page in a browser.

``make pictures`` writes them to docs/pictures. The program is the first Python block of the README,
so a picture cannot show anything else. The page needs the browser that scripts/install-browser.sh
installs; ``page.json`` keeps a checksum of the page it shows. A test fails if either picture is out
of date.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from stator.cli.design_file import load_design
from stator.cli.plan_view import show
from stator.design.design import Design
from stator.design.documents import document_of, html

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
_COLUMNS = 92
_PAGE_PIXELS = (1200, 1150)
# The fonts would be loaded from another host.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def design() -> Design:
    """The design in the first Python block of the README."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.py"
        path.write_text(found[1])
        return load_design(str(path))


def plan_svg() -> str:
    shop = design()
    console = Console(
        record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False,
        markup=False, emoji=False, legacy_windows=False,
    )  # fmt: skip
    console.print(Text("$ stator plan", style="bold"))
    show(shop.plan(), shop, console, as_table=False)
    return console.export_svg(title="stator plan", code_format=_FORMAT, unique_id="plan")


def page_html() -> str:
    return html(document_of(design()))


def checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "plan.svg").write_text(plan_svg())
    page = page_html()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page)
        width, height = _PAGE_PIXELS
        wanted = {"file": str(path), "width": width, "height": height,
                  "to": str(PICTURES / "page.png")}  # fmt: skip
        subprocess.run(  # noqa: S603  # our own script, in the browser of the tests
            [shutil.which("node") or "node", "--input-type=module", "-"],
            input=(ROOT / "scripts" / "screenshot.mjs").read_text(),
            cwd=ROOT / ".browser",
            env={**os.environ, "SCREENSHOT": json.dumps(wanted)},
            text=True,
            check=True,
        )
    (PICTURES / "page.json").write_text(json.dumps({"sha256": checksum(page)}) + "\n")
    print(f"wrote {', '.join(sorted(each.name for each in PICTURES.iterdir()))}", file=sys.stderr)


if __name__ == "__main__":
    main()
