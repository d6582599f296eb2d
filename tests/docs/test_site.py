"""The documentation site: every page has its place, and every link and anchor a target."""

from __future__ import annotations

from pathlib import Path

import pytest
from docsite import build, built_site, llms, markdown
from docsite.navigation import ordered, placed
from docsite.sources import DOCS, ROOT, address_of, example_pages, written_pages

WRITTEN = written_pages()
PAGES = {**WRITTEN, **example_pages()}


def test_every_page_has_a_place_in_the_navigation() -> None:
    """A new page belongs into a section of scripts/docsite/navigation.py."""
    assert placed(build.all_pages())[1] == []


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(file: Path) -> None:
    for target in markdown.links(file.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        page = (file.parent / path).resolve() if path else file
        assert address_of(page, PAGES) is not None, f"{target} is not a page of the site"
        if anchor:
            assert anchor in markdown.anchors(page.read_text()), target


@pytest.mark.parametrize("example", example_pages(), ids=lambda file: file.stem)
def test_an_example_is_in_the_list_and_linked_from_a_guide(example: Path) -> None:
    def links(page: Path) -> set[Path]:
        return {(page.parent / each).resolve() for each in markdown.links(page.read_text())}

    assert example in links(example.parent / "README.md")
    assert any(example in links(guide) for guide in (DOCS / "guides").glob("*.md"))


@pytest.mark.parametrize("file", sorted((DOCS / "guides").glob("*.md")), ids=lambda file: file.stem)
def test_a_guide_starts_with_the_task_it_solves(file: Path) -> None:
    first = file.read_text().split("\n", 2)[2].lstrip().splitlines()[0]
    assert first[0].isalpha() or first[0] == "`", first
    assert not first.startswith("|")


# -- GitHub's Markdown, and the generator's


def test_anchors_are_github_s() -> None:
    text = (
        "# A page\n\n## 4. The lock file\n\n## `find()`, and more\n\n```\n# no\n```\n\n## A page\n"
    )
    assert markdown.anchors(text) == ["a-page", "4-the-lock-file", "find-and-more", "a-page-1"]


def test_a_page_becomes_one_of_the_generator() -> None:
    text = (
        "# Title\n\nA list:\n- [one](a.md#b)\n\n"
        '```python test="later"\nlink = "[x](y.md)"\n```\n\n```\nplain\n```\n'
    )
    assert markdown.for_generator(text, lambda target: f"../{target}") == (
        "# Title {#title}\n\n\nA list:\n\n- [one](../a.md#b)\n\n"
        '```python\nlink = "[x](y.md)"\n```\n\n```text\nplain\n```\n'
    )


def test_a_notebook_becomes_a_page_with_its_texts_and_its_code() -> None:
    page = build.all_pages()["examples/tour.md"]
    assert page.startswith("# A tour in a notebook\n")
    assert "```python\nshop.check()\n```" in page


def test_a_page_is_summed_up_by_its_first_sentence() -> None:
    text = "# Title\n\n```\ncode\n```\n\nMove [data](a.md): files\ninto tables. And more.\n"
    assert markdown.summary(text) == "Move data: files into tables."
    assert markdown.summary("# Title\n\n**Choice.** We do. It works.") == "We do."
    assert markdown.summary("# Title\n") == ""


def test_links_in_code_are_no_links() -> None:
    assert markdown.links("[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n") == ["b.md"]


# -- the check of the built site


def test_broken_links_and_foreign_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<script src="https://cdn.example/x.js"></script><a href="a.html#there">a</a>'
        '<a href="a.html#gone">a</a><a href="b.html">b</a><a href="https://example.org">c</a>'
    )
    (tmp_path / "a.html").write_text('<h1 id="there">a</h1>')
    (tmp_path / "x.css").write_text("@import url('https://fonts.example/y.css');")
    assert built_site.faults(tmp_path) == [
        "index.html: a.html#gone has no such anchor",
        "index.html: b.html does not exist",
        "index.html loads https://cdn.example/x.js from another host",
        "x.css loads from another host",
    ]


def test_llms_txt_has_every_page(tmp_path: Path) -> None:
    pages = build.all_pages()
    llms.write(tmp_path, pages, ordered(pages))
    index = (tmp_path / "llms.txt").read_text()
    assert index.startswith("# Stator\n\n> Stator builds data platforms on DynamoDB in Python")
    for address, text in pages.items():
        assert f"- [{markdown.title(text)}]({address})" in index
        assert (tmp_path / address).is_file()
    assert (tmp_path / "llms-full.txt").stat().st_size > 300_000
