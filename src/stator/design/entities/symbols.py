"""Symbols: objects that stand for a value that Python does not have.

A field of a class (``Order.total``), an argument of a pattern that is being traced, and a field of
an open update are symbols. DynamoDB knows the value, or a later call does. Python would happily
turn a symbol into text, count with it or use it as a condition, and the program would store
``"Order.total"`` or plan a constant. So every such use is refused, unless a subclass gives it a
meaning: a comparison of a field builds a condition, for example. ``repr`` always works.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn

Use = Literal["text", "number", "truth", "members", "arithmetic", "comparison", "call", "hash"]

SHOWN_USES: dict[Use, str] = {
    "text": "cannot be turned into text",
    "number": "cannot be turned into a number",
    "truth": "has no truth value",
    "members": "cannot be counted, iterated or searched",
    "arithmetic": "cannot be computed with",
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
