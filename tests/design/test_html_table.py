"""Tables for notebooks are escaped, and long values are cut."""

from stator.design.plan.html_table import html_table


def test_text_is_escaped_and_cut() -> None:
    made = html_table("a & b", ["<x>", "y"], [["<script>", None], [1, "z" * 200]])
    assert made == (
        "<table><caption>a &amp; b</caption><thead><tr><th>&lt;x&gt;</th><th>y</th></tr></thead>"
        "<tbody><tr><td>&lt;script&gt;</td><td></td></tr>"
        f"<tr><td>1</td><td>{'z' * 77}...</td></tr></tbody></table>"
    )
