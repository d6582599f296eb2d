"""PartiQL text: names are quoted, values are parameters.

Texts depend only on the names of attributes, so they are built once and cached (``StatementTexts``
in ``writer``). A server that caches parsed statements benefits as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

STATEMENT_CHARACTERS = 8192
"""The longest PartiQL text, from the shape PartiQLStatement of AWS's service model."""


class NotInPartiQL(Exception):
    """PartiQL cannot express a condition or a name, so the write needs a request of its own."""


def quoted(name: str) -> str:
    """Return an attribute or table name as a quoted PartiQL identifier.

    Raises NotInPartiQL if the name begins with ``#`` or ``:``, which DynamoDB Local takes for a
    placeholder.
    """
    if name[:1] in ("#", ":"):
        raise NotInPartiQL
    return '"' + name.replace('"', '""') + '"'


def quoted_path(parts: Sequence[str | int]) -> str:
    shown = [f"[{part}]" if isinstance(part, int) else f".{quoted(part)}" for part in parts]
    return "".join(shown)[1:]


def insert_text(table: str, names: Iterable[str]) -> str:
    members = ", ".join("'" + name.replace("'", "''") + "': ?" for name in names)
    return f"INSERT INTO {quoted(table)} VALUE {{{members}}}"


def update_text(
    table: str,
    assigned: Iterable[str],
    added: Iterable[str],
    united: Iterable[str],
    removed: Iterable[str],
    key_names: Iterable[str],
    where: str | None,
) -> str:
    """Return an UPDATE statement.

    ``assigned`` are set, ``added`` are numbers that are added to, ``united`` are sets that get more
    members. The parameters are, in order: the assigned values, the added values, the members, the
    key, and the parameters of ``where``. Raises NotInPartiQL if there is nothing to change.
    """
    changes = [f"{quoted(name)} = ?" for name in assigned]
    changes += [f"{quoted(name)} = {quoted(name)} + ?" for name in added]
    changes += [f"{quoted(name)} = set_add({quoted(name)}, ?)" for name in united]
    text = f"SET {', '.join(changes)}" if changes else ""
    text += "".join(f" REMOVE {quoted(name)}" for name in removed)
    if not text:
        raise NotInPartiQL
    return f"UPDATE {quoted(table)} {text.strip()} {_where(key_names, where)}"


def delete_text(table: str, key_names: Iterable[str], where: str | None) -> str:
    return f"DELETE FROM {quoted(table)} {_where(key_names, where)}"  # noqa: S608 - quoted


def _where(key_names: Iterable[str], where: str | None) -> str:
    terms = [f"{quoted(name)} = ?" for name in key_names]
    if where is not None:
        terms.append(f"({where})")
    return f"WHERE {' AND '.join(terms)}"
