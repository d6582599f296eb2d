"""Formats values the way AWS's Java objects appear in its messages.

For example ``[KeySchemaElement(attributeName=pk, keyType=HASH)]``.
"""

from __future__ import annotations

from typing import Any


def camel(name: str) -> str:
    return name[0].lower() + name[1:]


def rendered(shapes: dict[str, Any], name: str, value: Any) -> str:
    """Return a value of the shape ``name`` in the form that messages show."""
    shape = shapes[name]
    if value is None:
        return "null"
    if name == "AttributeValue":
        return _attribute_value(value)
    match shape["type"]:
        case "list":
            return (
                "["
                + ", ".join(rendered(shapes, shape["member"]["shape"], inner) for inner in value)
                + "]"
            )
        case "map":
            inner_name = shape["value"]["shape"]
            return (
                "{"
                + ", ".join(f"{k}={rendered(shapes, inner_name, v)}" for k, v in value.items())
                + "}"
            )
        case "structure":
            members = [
                f"{camel(member)}={rendered(shapes, target['shape'], value.get(member))}"
                for member, target in shape["members"].items()
            ]
            if name == "PutRequest":
                members.append("workloadProfileName=null")
            return f"{name}({', '.join(members)})"
    return str(value)


_AV_MEMBERS = "s n b iNT dECIMAL dOUBLE sS nS bS iNTSET dECIMALSET dOUBLESET m l nULL bOOL".split()
_AV_KINDS = {
    "S": "s",
    "N": "n",
    "B": "b",
    "SS": "sS",
    "NS": "nS",
    "BS": "bS",
    "M": "m",
    "L": "l",
    "NULL": "nULL",
    "BOOL": "bOOL",
}


def _attribute_value(value: dict[str, Any]) -> str:
    shown: dict[str, str] = dict.fromkeys(_AV_MEMBERS, "null")
    for kind, content in value.items():
        shown[_AV_KINDS[kind]] = _content(kind, content)
    return "AttributeValue(" + ", ".join(f"{name}={text}" for name, text in shown.items()) + ")"


def _content(kind: str, content: Any) -> str:
    if kind == "M":
        return (
            "{"
            + ", ".join(f"{name}={_attribute_value(inner)}" for name, inner in content.items())
            + "}"
        )
    if kind == "L":
        return "[" + ", ".join(map(_attribute_value, content)) + "]"
    if isinstance(content, list):
        return "[" + ", ".join(content) + "]"
    return str(content).lower() if isinstance(content, bool) else str(content)
