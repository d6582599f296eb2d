"""DynamoDB numbers: exact decimals of up to 38 digits, kept as the string that AWS returns.

A number is normalised once, on arrival: no exponent, no leading or trailing zeros. From then on two
numbers are equal exactly when their strings are equal. This module also computes the size of a
number in an item, its value for arithmetic and comparison, and an encoding whose byte order is
numeric order.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, InvalidOperation

from stator.errors import ValidationFailed, ValueFailed
from stator.model.limits import NUMBER_DIGITS, NUMBER_MAX_EXPONENT, NUMBER_MIN_EXPONENT

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

# Matches numbers that are normal already and short enough: most fractions and negative numbers.
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{0,17}[1-9]|-[1-9][0-9]{0,37}")

# Sums of two DynamoDB numbers are exact in this precision before they are rounded to 38 digits:
# the widest pair spans 10^125 down to 10^-130 with 38 digits below that.
_EXACT = Context(prec=320, Emax=999_999, Emin=-999_999, traps=[InvalidOperation])

# AWS refuses an exponent past 64 bits; Python refuses to convert one of thousands of digits.
_LEAST_EXPONENT, _MOST_EXPONENT = -(1 << 63), (1 << 63) - 1
_LONGEST_EXPONENT = 64
_LONG_CHARACTERS = 400
# Operations with the older texts read a number as Java's BigDecimal does. There this exponent wraps
# around to an underflow (captured from AWS by the paritysuite conformance suite).
_WRAPPING_EXPONENT = (1 << 31) - 1

OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
TOO_PRECISE = "Attempting to store more than 38 significant digits in a Number"
NOT_A_NUMBER = "The parameter cannot be converted to a numeric value"


def normalise(text: str) -> str:
    """Return the number in the form AWS returns.

    Raises ValidationFailed if AWS refuses the number.
    """
    return text if _is_normal(text) else _normalise_slowly(text)


def _is_normal(text: str) -> bool:
    """Whether a quick check shows that the number is normalised already.

    Returns False when unsure.
    """
    if (
        text.isdecimal()
        and text.isascii()
        and len(text) <= NUMBER_DIGITS
        and (text[0] != "0" or text == "0")
    ):
        return True
    return _PLAIN.fullmatch(text) is not None


# Short numbers repeat often, so their sizes are cached.
_SHORT_CHARACTERS = 8
_REMEMBERED = 20_000
_sizes: dict[str, int] = {}


def normal_size(text: str) -> int:
    """Return the size of a number in an item (see ``size_bytes``) if it is normalised.

    Returns 0 if a quick check does not show that it is.
    """
    size = _sizes.get(text, 0)
    if size == 0 and _is_normal(text):
        size = size_bytes(text)
        if len(text) <= _SHORT_CHARACTERS:
            if len(_sizes) >= _REMEMBERED:
                _sizes.clear()
            _sizes[text] = size
    return size


def _normalise_slowly(text: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ValueFailed(
            f"{NOT_A_NUMBER}: {text}", older=f"{NOT_A_NUMBER}: {text}" if text else NOT_A_NUMBER
        )
    exponent = text.lower().partition("e")[2]
    # Decimal refuses exponents past its own limits, and AWS checks the exponent even of a zero.
    if len(exponent) > _LONGEST_EXPONENT:
        raise ValidationFailed(f"{NOT_A_NUMBER}: {text}")
    power = int(exponent) if exponent else 0
    if not _LEAST_EXPONENT <= power <= _MOST_EXPONENT:
        raise ValidationFailed(f"{NOT_A_NUMBER}: {text}")
    if power == _WRAPPING_EXPONENT:
        raise ValueFailed(OVERFLOW, older=UNDERFLOW)
    if power > 1000:
        raise ValidationFailed(OVERFLOW)
    if power < -1000:
        raise ValidationFailed(UNDERFLOW)
    value = Decimal(_shortened(text, power) if len(text) > _LONG_CHARACTERS else text)
    if not value and exponent:
        if power > NUMBER_MAX_EXPONENT:
            raise ValidationFailed(OVERFLOW)
        if power < NUMBER_MIN_EXPONENT:
            raise ValidationFailed(UNDERFLOW)
    return from_decimal(value)


def _shortened(text: str, power: int) -> str:
    """Return the same number without its zeros at both ends, in scientific notation.

    Decimal takes a long time for millions of digits. Raises ValidationFailed if the number has too
    many digits to be stored.
    """
    mantissa = text.lower().partition("e")[0]
    whole, _, fraction = mantissa.lstrip("+-").partition(".")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return "0"
    exponent = power - len(fraction)
    magnitude = exponent + len(digits) - 1
    if magnitude > NUMBER_MAX_EXPONENT:
        raise ValidationFailed(OVERFLOW)
    if magnitude < NUMBER_MIN_EXPONENT:
        raise ValidationFailed(UNDERFLOW)
    if len(significant) > NUMBER_DIGITS:
        raise ValidationFailed(TOO_PRECISE)
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{significant}e{exponent + len(digits) - len(significant)}"


def from_decimal(value: Decimal) -> str:
    """Return the normalised string of a finite decimal.

    Raises ValidationFailed if the value is out of range or has more than 38 digits.
    """
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    significant = text.rstrip("0")
    if not significant:
        return "0"
    exponent += len(text) - len(significant)
    magnitude = exponent + len(significant) - 1
    if magnitude > NUMBER_MAX_EXPONENT:
        raise ValidationFailed(OVERFLOW)
    if magnitude < NUMBER_MIN_EXPONENT:
        raise ValidationFailed(UNDERFLOW)
    if len(significant) > NUMBER_DIGITS:
        raise ValidationFailed(TOO_PRECISE)
    return ("-" if sign else "") + _plain(significant, exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent >= 0:
        return digits + "0" * exponent
    point = len(digits) + exponent
    if point > 0:
        return f"{digits[:point]}.{digits[point:]}"
    return f"0.{'0' * -point}{digits}"


_SMALL_DIGITS = 18


def add(left: str, right: str) -> str:
    if (
        len(left) <= _SMALL_DIGITS
        and len(right) <= _SMALL_DIGITS
        and "." not in left
        and "." not in right
    ):
        return str(int(left) + int(right))
    return _stored(_EXACT.add(Decimal(left), Decimal(right)))


def subtract(left: str, right: str) -> str:
    if (
        len(left) <= _SMALL_DIGITS
        and len(right) <= _SMALL_DIGITS
        and "." not in left
        and "." not in right
    ):
        return str(int(left) - int(right))
    return _stored(_EXACT.subtract(Decimal(left), Decimal(right)))


def _stored(result: Decimal) -> str:
    """Return the result of an addition or subtraction as DynamoDB stores it.

    Raises ValidationFailed if it does not fit. AWS reports a result of more than 38 digits
    (1e50 + 1) as an overflow, too.
    """
    try:
        return from_decimal(result)
    except ValidationFailed as error:
        raise ValidationFailed(
            OVERFLOW if error.message == TOO_PRECISE else error.message
        ) from None


def size_bytes(text: str) -> int:
    """Return the bytes that a normalised number takes in an item.

    The size is one byte, plus one for every two digits on each side of the point, plus one for a
    minus sign. Trailing zeros of the integer side count only if a fraction follows. Measured on AWS
    to the byte by the public conformance suite of paritysuite: 0 -> 1, 100 -> 2, 1010 -> 3, 1.5 ->
    3, 0.15 -> 2, -42 -> 3.
    """
    if text == "0":
        return 1
    negative = text[0] == "-"
    whole, point, fraction = (text[1:] if negative else text).partition(".")
    if not point:
        return 1 + (len(whole.rstrip("0")) + 1) // 2 + negative
    if whole == "0":
        return 1 + (len(fraction.lstrip("0")) + 1) // 2 + negative
    return 1 + (len(whole) + 1) // 2 + (len(fraction) + 1) // 2 + negative


_COMPLEMENT = bytes(255 - byte for byte in range(256))


def encode_ordered(text: str) -> bytes:
    """Return bytes that sort as the numbers do.

    The first byte is the sign (0x40 negative, 0x80 zero, 0xC0 positive). For a number 0.d1d2.. x
    10^e, two bytes of e + 256 follow, then the digits, two to a byte. ``12`` is C0 01 02 12. In
    negative numbers all bytes after the sign are complemented and closed with FF, so that a longer
    mantissa, which is further from zero, sorts first.
    """
    if text == "0":
        return b"\x80"
    negative = text[0] == "-"
    whole, _, fraction = (text[1:] if negative else text).partition(".")
    if whole == "0":
        digits = fraction.lstrip("0")
        exponent = len(digits) - len(fraction)
    else:
        digits = (whole + fraction).rstrip("0")
        exponent = len(whole)
    if len(digits) % 2:
        digits += "0"
    body = (exponent + 256).to_bytes(2, "big") + bytes.fromhex(digits)
    return b"\x40" + body.translate(_COMPLEMENT) + b"\xff" if negative else b"\xc0" + body


def decode_ordered(encoded: bytes) -> str:
    """Return the number whose ordered encoding this is, as ``encode_ordered`` takes it."""
    if encoded == b"\x80":
        return "0"
    negative = encoded[0] == 0x40
    body = encoded[1:-1].translate(_COMPLEMENT) if negative else encoded[1:]
    exponent = int.from_bytes(body[:2], "big") - 256
    digits = body[2:].hex().rstrip("0")
    if exponent <= 0:
        text = f"0.{'0' * -exponent}{digits}"
    elif exponent >= len(digits):
        text = digits + "0" * (exponent - len(digits))
    else:
        text = f"{digits[:exponent]}.{digits[exponent:]}"
    return f"-{text}" if negative else text
