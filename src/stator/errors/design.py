"""Errors of settings and of designs."""

from __future__ import annotations

from stator.errors.base import StatorError


class ConfigurationError(StatorError):
    """An argument, an option or a file given to Stator is wrong."""


class LiveTableUnreachable(StatorError):
    """A command cannot read a live table: no connection, no permission, or no credentials."""


class DesignError(StatorError):
    """An entity, an access pattern or a design is wrong."""


class ItemMismatch(DesignError):
    """A value does not fit its entity's field, when written or when read.

    The message names the field and what is wrong. Values may be personal data, and messages reach
    logs, so the value is only in ``value``.
    """

    def __init__(self, entity: str, field: str, problem: str, value: object) -> None:
        super().__init__(f"{entity}.{field}: {problem}")
        self.entity = entity
        self.field = field
        self.value = value
        self.identity: str | None = None

    def of_item(self, identity: str) -> ItemMismatch:
        """Add the item's identity, such as ``Order(order_id='o1')``, to the message; return self.

        Does nothing if the message already names an item.
        """
        if self.identity is None:
            self.identity = identity
            self.message = f"{self.message} (in {identity})"
            self.args = (self.message,)
        return self


class NewerVersion(ItemMismatch):
    """A newer version of the entity class wrote the item.

    ``found`` is the version of the item, and ``known`` the version of this program's class.
    """

    hint = 'deploy the newer code, or declare the entity with on_newer="ignore_unknown"'

    def __init__(self, entity: str, found: int, known: int) -> None:
        super().__init__(
            entity, "_v", f"the item has version {found}, and the class has version {known}", found
        )
        self.found = found
        self.known = known


class DesignFileWrong(DesignError):
    """The Python file of a design does not run, or defines no design.

    ``path`` and ``line`` say where. ``excerpt`` is the source of that line. ``problem`` is the
    message without the path, line and excerpt.
    """

    def __init__(
        self, path: str, line: int, problem: str, *, hint: str | None = None, excerpt: str = ""
    ) -> None:
        shown = f"\n{line:>6} | {excerpt.strip()}" if excerpt.strip() else ""
        super().__init__(f"{path}:{line}: {problem}{shown}", hint=hint)
        self.path = path
        self.line = line
        self.problem = problem
        self.excerpt = excerpt


class PatternRefused(DesignError):
    """No key can serve an access pattern as it is declared.

    ``pattern`` is the name of the pattern. ``dollars`` is the monthly price of the change that
    ``hint`` proposes, or None if it has no price.
    """

    def __init__(
        self, pattern: str, message: str, *, hint: str, dollars: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.pattern = pattern
        self.dollars = dollars


class ScanNeeded(PatternRefused):
    """The pattern would read the whole table. ``scan_dollars`` is the monthly price of doing so."""

    def __init__(
        self,
        pattern: str,
        message: str,
        *,
        hint: str,
        dollars: float | None = None,
        scan_dollars: float = 0.0,
    ) -> None:
        super().__init__(pattern, message, hint=hint, dollars=dollars)
        self.scan_dollars = scan_dollars
