"""The entity diagram as SVG: boxes in columns, parents left of children, crow's feet for "many".

Colours come from the CSS variables of the page, so the drawing follows its dark mode. Text is
measured by counting characters of a monospaced font, which is exact enough for boxes.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from stator.design.documents.diagram import Diagram, EntityBox, Relation

_LETTER: Final = 7.3
_ROW: Final = 20
_HEAD: Final = 32
_MARGIN: Final = 14
_GAP_X: Final = 150
_GAP_Y: Final = 26
_FOOT: Final = 10


@dataclass(frozen=True, slots=True)
class _Placed:
    box: EntityBox
    x: float
    y: float
    width: float
    height: float

    def row_y(self, fields: set[str]) -> float:
        """Return the vertical position of the first of these fields in the box.

        If the box has none of them, return the position of its head.
        """
        for at, field in enumerate(self.box.fields):
            if field.name in fields:
                return self.y + _HEAD + at * _ROW + _ROW / 2 + 4
        return self.y + _HEAD / 2


def svg(diagram: Diagram) -> str:
    """Return the SVG element of a diagram."""
    placed = _place(diagram)
    width = max((each.x + each.width for each in placed.values()), default=0) + 2
    height = max((each.y + each.height for each in placed.values()), default=0) + 2
    lines = [_relation(each, placed) for each in diagram.relations]
    boxes = [_box(each) for each in placed.values()]
    return (
        f'<svg class="entities" viewBox="-2 -2 {width + 4:.0f} {height + 4:.0f}" '
        f'width="{width + 4:.0f}" height="{height + 4:.0f}" role="img" '
        'aria-label="Entity diagram">\n' + "\n".join([*lines, *boxes]) + "\n</svg>"
    )


def _place(diagram: Diagram) -> dict[str, _Placed]:
    depth = _depths(diagram)
    columns: dict[int, list[EntityBox]] = {}
    for box in diagram.boxes:
        columns.setdefault(depth[box.name], []).append(box)
    placed: dict[str, _Placed] = {}
    x = 0.0
    for at in sorted(columns):
        width = max(_width(box) for box in columns[at])
        y = 0.0
        for box in sorted(columns[at], key=lambda each: _height_of_parents(each, diagram, placed)):
            height = _HEAD + len(box.fields) * _ROW + 10
            placed[box.name] = _Placed(box, x, y, width, height)
            y += height + _GAP_Y
        x += width + _GAP_X
    return placed


def _height_of_parents(box: EntityBox, diagram: Diagram, placed: dict[str, _Placed]) -> float:
    """Return the average vertical position of a box's parents.

    A box at that height has few crossing lines.
    """
    parents = [
        placed[each.parent]
        for each in diagram.relations
        if each.child == box.name and each.parent in placed
    ]
    return sum(each.y for each in parents) / len(parents) if parents else 0.0


def _depths(diagram: Diagram) -> dict[str, int]:
    """Return the column of each entity: its longest path from an entity without parents.

    Entities that are parents of each other stay in one column.
    """
    depth = {box.name: 0 for box in diagram.boxes}
    for _ in diagram.boxes:
        for each in diagram.relations:
            if depth[each.child] <= depth[each.parent] < len(diagram.boxes) - 1 and not _mutual(
                each, diagram
            ):
                depth[each.child] = depth[each.parent] + 1
    used = sorted(set(depth.values()))
    return {name: used.index(each) for name, each in depth.items()}


def _mutual(relation: Relation, diagram: Diagram) -> bool:
    """Whether the parent is also a descendant of its child."""
    seen, ahead = set[str](), [relation.child]
    while ahead:
        name = ahead.pop()
        if name == relation.parent:
            return True
        if name not in seen:
            seen.add(name)
            ahead += [each.child for each in diagram.relations if each.parent == name]
    return False


def _width(box: EntityBox) -> float:
    longest = max(
        (len(field.name) + len(field.kind) + len(field.mark) for field in box.fields), default=0
    )
    return max(150.0, (longest + 6) * _LETTER + 2 * _MARGIN, len(box.name) * 9 + 2 * _MARGIN)


def _box(placed: _Placed) -> str:
    x, y, width, height = placed.x, placed.y, placed.width, placed.height
    left, right = f"{x + _MARGIN:.1f}", f"{x + width - _MARGIN:.1f}"
    area = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    head = f"M{x:.1f} {y + _HEAD:.1f} v{8 - _HEAD} q0 -8 8 -8 h{width - 16:.1f} q8 0 8 8"
    parts = [
        f'<g><rect class="box" {area} rx="8"/>',
        f'<path class="head" d="{head} v{_HEAD - 8} z"/>',
        f'<text class="name" x="{left}" y="{y + 21:.1f}">{escape(placed.box.name)}</text>',
    ]
    for at, field in enumerate(placed.box.fields):
        base = y + _HEAD + at * _ROW + 18
        strong = " key" if "PK" in field.mark else ""
        parts.append(
            f'<text class="field{strong}" x="{left}" y="{base:.1f}">{escape(field.name)}</text>'
        )
        kind = (
            f'<tspan class="mark">{field.mark}</tspan>  {escape(field.kind)}'
            if field.mark
            else escape(field.kind)
        )
        parts.append(
            f'<text class="kind" x="{right}" y="{base:.1f}" text-anchor="end">{kind}</text>'
        )
    return "\n".join([*parts, "</g>"])


def _relation(relation: Relation, placed: dict[str, _Placed]) -> str:
    parent, child = placed[relation.parent], placed[relation.child]
    keys = {field.name for field in parent.box.fields if "PK" in field.mark}
    foreign = {
        field.name
        for field in child.box.fields
        if "FK" in field.mark and field.name.endswith(tuple(keys))
    }
    y1, y2 = parent.row_y(keys), child.row_y(foreign or keys)
    if child.x > parent.x:
        x1, x2, bend, side = parent.x + parent.width, child.x, 60.0, -1
        curve = f"C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2 - _FOOT:.1f} {y2:.1f}"
        path = f"M{x1:.1f} {y1:.1f} {curve}"
    else:
        x1, x2, side = parent.x + parent.width, child.x + child.width, 1
        out = max(x1, x2) + 50
        path = (
            f"M{x1:.1f} {y1:.1f} C{out:.1f} {y1:.1f} {out:.1f} {y2:.1f} {x2 + _FOOT:.1f} {y2:.1f}"
        )
    foot = "" if relation.is_one else _crows_foot(x2, y2, side)
    end = f"M{x2 + side * _FOOT:.1f} {y2:.1f} L{x2:.1f} {y2:.1f}"
    return f'<path class="line" d="{path} {end} {foot}"/>{_label(relation, x2, y2, side)}'


def _label(relation: Relation, x: float, y: float, side: int) -> str:
    """Return the label of a line, placed at the child's end, where lines do not meet.

    ``side`` is -1 for a label on the left of ``x``, and 1 for one on the right.
    """
    anchor = "end" if side < 0 else "start"
    return (
        f'<text class="each" x="{x + side * (_FOOT + 5):.1f}" y="{y - 6:.1f}" '
        f'text-anchor="{anchor}">'
        f"{escape(relation.label)}</text>"
    )


def _crows_foot(x: float, y: float, side: int) -> str:
    tip = x + side * _FOOT
    return f"M{tip:.1f} {y:.1f} L{x:.1f} {y - 6:.1f} M{tip:.1f} {y:.1f} L{x:.1f} {y + 6:.1f}"
