"""Settings and designs."""

from __future__ import annotations

from stator.errors.base import StatorError


class ConfigurationError(StatorError):
    """An argument or a file given to Stator itself does not make sense."""


class LiveTableUnreachable(StatorError):
    """No connection, no permission, no credentials: ``hint`` says which to look at."""


class DesignError(StatorError):
    """Something is wrong with an entity, an access pattern or a design."""


class ItemMismatch(DesignError):
    """A value does not fit the field of an entity it was written to, or read for."""

    def __init__(self, entity: str, field: str, problem: str, value: object) -> None:
        shown = repr(value)
        super().__init__(
            f"{entity}.{field}: {problem}: {shown if len(shown) <= 80 else shown[:77] + '...'}"
        )
        self.entity = entity
        self.field = field
        self.value = value


class DesignFileWrong(DesignError):
    """``path`` and ``line`` say where; ``excerpt`` is that line; ``problem`` is the message without them."""

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
    """``pattern`` is its name; ``dollars`` a month is the price of the change that ``hint`` proposes, where it has one."""

    def __init__(
        self, pattern: str, message: str, *, hint: str, dollars: float | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.pattern = pattern
        self.dollars = dollars


class ScanNeeded(PatternRefused):
    """``scan_dollars`` is what the pattern would cost as a Scan, a month."""

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
