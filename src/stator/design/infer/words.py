"""Names for entities and fields, made from the names of tables, key words and attributes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from typing import Final

_STAGES: Final = frozenset(
    {"prod", "production", "prd", "dev", "development", "staging", "stage", "test", "qa"}
    | {"table", "tables", "tbl", "dynamodb", "ddb", "db"}
)
_IRREGULAR: Final = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "movies": "movie",
    "cookies": "cookie",
    "series": "series",
    "news": "news",
    "species": "species",
    "indices": "index",
    "matrices": "matrix",
}

# Names that a design file uses itself. A field of such a name would hide it in the class body.
_USED_IN_CLASSES: Final = frozenset(
    {"str", "int", "bool", "bytes", "set", "list", "dict", "date", "datetime"}
    | {"Decimal", "UUID", "Any", "ident", "stored", "ttl"}
)
_USED_IN_FILES: Final = frozenset(
    {
        "Design",
        "Entity",
        "IndexKey",
        "Query",
        "BundleMany",
        "find",
        "read",
        "together",
        "annotations",
    }
    | {f"Bundle{number}" for number in range(2, 9)}
    | _USED_IN_CLASSES
)


def words_of(name: str) -> list[str]:
    """Return the words of a name in snake_case, kebab-case, camelCase or with dots and spaces."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return [word for word in re.split(r"[\W_]+", apart) if word]


def singular(word: str) -> str:
    """Return the singular of an English noun: ``categories`` becomes ``category``."""
    low = word.lower()
    if low in _IRREGULAR:
        found = _IRREGULAR[low]
    elif low.endswith("ies") and len(low) > 4:
        found = low[:-3] + "y"
    elif low.endswith(("sses", "shes", "ches", "xes", "zes")):
        found = low[:-2]
    elif low.endswith("s") and len(low) > 2 and not low.endswith(("ss", "us", "is")):
        found = low[:-1]
    else:
        return word
    return found.upper() if word.isupper() else word[:1] + found[1:]


def class_name(text: str) -> str:
    """Return a class name for a word or phrase in the singular: ``ORDER_LINES`` is OrderLine."""
    words = words_of(text)
    words = [*words[:-1], *map(singular, words[-1:])]
    name = "".join(
        word[:1].upper() + (word[1:].lower() if word.isupper() else word[1:]) for word in words
    )
    if not name.isidentifier():
        name = f"Item{name}" if f"Item{name}".isidentifier() else "Item"
    return f"{name}Item" if name in _USED_IN_FILES or keyword.iskeyword(name) else name


def class_of_table(table: str, common: str = "") -> str:
    """Return a class name for the items of a table.

    A stage (prod, dev) is left out, and so is the name that all tables have in common.
    """
    words, start = words_of(table), words_of(common)
    if words[: len(start)] == start and len(words) > len(start):
        words = words[len(start) :]
    telling = [word for word in words if word.lower() not in _STAGES]
    return class_name(" ".join(telling or words))


def snake(text: str) -> str:
    return "_".join(words_of(text)).lower()


def field_name(attribute: str, taken: Collection[str] = ()) -> str:
    """Return a field name for an attribute: ``firstName`` and ``first-name`` are first_name.

    ``taken`` are names that the field cannot have.
    """
    name = snake(attribute)
    if attribute.isidentifier() and attribute == attribute.lower() and attribute[0] != "_":
        name = attribute
    if not name.isidentifier():
        name = f"field_{name}" if f"field_{name}".isidentifier() else "field"
    if keyword.iskeyword(name) or name in _USED_IN_CLASSES:
        name += "_"
    return free_name(name, taken)


def function_name(text: str, taken: Collection[str] = ()) -> str:
    """Return a name for a function or a variable of a design file."""
    name = snake(text)
    if not name.isidentifier():
        name = f"design_{name}" if f"design_{name}".isidentifier() else "design"
    if keyword.iskeyword(name) or name in _USED_IN_FILES:
        name += "_"
    return free_name(name, taken)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number if the name itself is taken."""
    found, count = name, 2
    while found in taken:
        found, count = f"{name}_{count}" if name[0].islower() else f"{name}{count}", count + 1
    return found
