"""The style sheet of the HTML page: light or dark by the reader's setting, printable."""

from __future__ import annotations

STYLE: str = """
:root {
  --page: #fbfaf7; --card: #ffffff; --ink: #1d2126; --soft: #5d6570; --line: #e3e0d8;
  --accent: #0b6e69;
  --accent-soft: #d9efec; --code: #f3f1ea; --bar: #7cc0b8; --warn: #8a4b00; --warn-soft: #fff3dc;
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --card: #1b1f24; --ink: #e6e8ea; --soft: #98a1ab; --line: #2d333a;
    --accent: #6fd0c5;
    --accent-soft: #173634; --code: #23282e; --bar: #2f7f77; --warn: #ffc876; --warn-soft: #35280f;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1180px; margin: 0 auto; padding: 2.5rem 1.5rem 5rem; }
header.top h1 { font-size: 2.4rem; line-height: 1.2; margin: 0; letter-spacing: -0.02em; }
header.top p { margin: .3rem 0 0; color: var(--soft); }
nav {
  position: sticky; top: 0; z-index: 1; background: var(--page);
  border-bottom: 1px solid var(--line); margin: 1.2rem 0 0;
}
nav a {
  display: inline-block; padding: .6rem 0; margin-right: 1.4rem; color: var(--soft);
  text-decoration: none;
}
nav a:hover { color: var(--accent); }
h2 { font-size: 1.5rem; margin: 2.8rem 0 .8rem; letter-spacing: -0.01em; scroll-margin-top: 4rem; }
h3 { font-size: 1.1rem; margin: 1.8rem 0 .5rem; }
.facts { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.4rem 0 0; }
.fact {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: .7rem 1.1rem; min-width: 8rem;
}
.fact b { display: block; font-size: 1.5rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.fact span { color: var(--soft); font-size: .85rem; }
.scroll {
  overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
}
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
.scroll table { min-width: 36rem; }
th {
  text-align: left; font-weight: 600; color: var(--soft); font-size: .8rem; white-space: nowrap;
}
th, td { padding: .55rem .8rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
code, svg text {
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
}
code {
  font-size: .86em; background: var(--code); border-radius: 4px; padding: .1em .35em;
  overflow-wrap: anywhere;
}
.keys code, .card td:first-child code, td:first-child .name { white-space: nowrap; }
td .name { font-weight: 600; }
.note { color: var(--soft); font-size: .88rem; }
.tag {
  display: inline-block; border-radius: 999px; padding: .05rem .55rem; font-size: .78rem;
  background: var(--accent-soft);
  color: var(--accent); white-space: nowrap;
}
.bar {
  display: block; height: 4px; border-radius: 2px; background: var(--bar); margin: .35rem 0 0 auto;
}
details { margin-top: .25rem; font-size: .88rem; color: var(--soft); }
details summary { cursor: pointer; color: var(--accent); }
details ul { margin: .3rem 0; padding-left: 1.2rem; }
.warning {
  background: var(--warn-soft); color: var(--warn); border-radius: 8px; padding: .5rem .9rem;
  margin: .5rem 0;
}
.cards {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(34rem, 100%), 1fr));
  gap: 1.2rem; align-items: start;
}
.card h3 { margin: 0 0 .1rem; }
.card > p { margin: 0 0 .6rem; }
.drawing {
  overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.4rem;
}
svg.entities { display: block; max-width: none; }
svg .box { fill: var(--page); stroke: var(--line); }
svg .head { fill: var(--accent-soft); }
svg .name { fill: var(--accent); font-weight: 700; font-size: 14px; font-family: inherit; }
svg .field { fill: var(--ink); font-size: 12px; }
svg .key { font-weight: 700; }
svg .kind { fill: var(--soft); font-size: 12px; }
svg .mark { fill: var(--accent); font-size: 10px; }
svg .line { fill: none; stroke: var(--soft); stroke-width: 1.3; }
svg .each {
  fill: var(--soft); font-size: 11px; paint-order: stroke; stroke: var(--card); stroke-width: 5px;
}
h4 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
.legend { margin: 0 0 .6rem; }
.entity {
  display: inline-block; border-radius: 5px; padding: .05rem .5rem; margin: 0 .4rem .2rem 0;
  font-size: .8rem; font-weight: 600; white-space: nowrap;
  background: hsl(var(--hue) 55% 90%); color: hsl(var(--hue) 60% 24%);
}
@media (prefers-color-scheme: dark) {
  .entity { background: hsl(var(--hue) 35% 24%); color: hsl(var(--hue) 70% 82%); }
}
.tabs > input { position: absolute; opacity: 0; }
.tabs > label {
  display: inline-block; padding: .35rem .9rem; cursor: pointer; color: var(--soft);
  border-bottom: 2px solid transparent;
}
.tabs > input:checked + label { color: var(--accent); border-color: var(--accent); }
.tabs > input:focus-visible + label { outline: 2px solid var(--accent); border-radius: 4px; }
.tabs > .panel { display: none; }
.collections tr.first > td { border-top: 2px solid var(--line); }
.collections td > code { white-space: nowrap; }
.collections td.partition { background: var(--code); }
.collections dl { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: 0; }
.collections dt { color: var(--soft); font-size: .72rem; line-height: 1.3; }
.collections dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media print {
  nav, .tabs > label { display: none; }
  .scroll, .drawing { overflow: visible; }
  .tabs > .panel { display: block; margin-bottom: 1rem; }
  details > ul { display: block; }
}
"""
# One rule for each possible tab: the table and its 25 indexes at most.
STYLE += "".join(
    f".tabs > input:nth-of-type({at}):checked ~ .panel:nth-of-type({at}) {{ display: block; }}\n"
    for at in range(1, 27)
)
