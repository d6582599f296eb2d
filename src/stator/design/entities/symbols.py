"""Symbols: objects that stand for a value that Python does not have.

A field of a class (``Order.total``), an argument of a pattern that is being traced, and a field of
an open update are symbols. Only DynamoDB, or a later call of the pattern, knows the value. Without
this class, Python would turn a symbol into text or use it in an ``if``. The program would then
store the text ``"Order.total"``, or one branch of a pattern would become the plan of all calls. So
every such use raises an error, unless a subclass gives it a meaning: comparing a field builds a
condition, for example. ``repr`` always works.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn

Use = Literal["text", "number", "truth", "members", "arithmetic", "comparison", "call", "hash"]

SHOWN_USES: dict[Use, str] = {
    "text": "cannot be turned into text",
    "number": "cannot be turned into a number",
    "truth": "has no truth value",
    "members": "cannot be counted, iterated or searched",
    "arithmetic": "cannot be used in arithmetic",
    "comparison": "cannot be compared",
    "call": "cannot be called",
    "hash": "cannot be a member of a set or a key of a dictionary",
}


def _refusing(use: Use) -> Any:
    """Return a special method that calls ``_refuse(use)``, which raises an error."""

    def refuse(symbol: Symbol, *_: Any, **__: Any) -> NoReturn:
        symbol._refuse(use)

    return refuse


class Symbol:
    """Base class of symbols: every operator that needs a value calls ``_refuse``.

    Subclasses implement ``_refuse``, which raises an error that says what to write instead.
    """

    __slots__ = ()

    def _refuse(self, use: Use) -> NoReturn:
        raise NotImplementedError

    __str__ = __format__ = __bytes__ = _refusing("text")
    __int__ = __float__ = __complex__ = __index__ = _refusing("number")
    __round__ = __trunc__ = __floor__ = __ceil__ = _refusing("number")
    __bool__ = _refusing("truth")
    __len__ = __iter__ = __contains__ = __reversed__ = _refusing("members")
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refusing("arithmetic")
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refusing("arithmetic")
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refusing("arithmetic")
    __matmul__ = __rmatmul__ = __lshift__ = __rlshift__ = _refusing("arithmetic")
    __rshift__ = __rrshift__ = __and__ = __rand__ = _refusing("arithmetic")
    __or__ = __ror__ = __xor__ = __rxor__ = _refusing("arithmetic")
    __neg__ = __pos__ = __abs__ = __invert__ = _refusing("arithmetic")
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refusing("comparison")
    __call__ = _refusing("call")
    __hash__ = _refusing("hash")
