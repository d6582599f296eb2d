"""Numbers written with exponents (captured from AWS, eu-west-2, by the paritysuite conformance
suite).
"""

from __future__ import annotations

import pytest

from .conftest import Answers

OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
NOT_A_NUMBER = "The parameter cannot be converted to a numeric value"


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("1e126", OVERFLOW),
        ("1e-131", UNDERFLOW),
        ("0e126", OVERFLOW),
        ("0e-131", UNDERFLOW),
        ("1e2147483647", OVERFLOW),
        ("1e2147483648", OVERFLOW),
        ("-1e99999999999", OVERFLOW),
        ("1e-99999999999", UNDERFLOW),
        ("1e9223372036854775807", OVERFLOW),
        ("1e9223372036854775808", f"{NOT_A_NUMBER}: 1e9223372036854775808"),
        ("1e-9223372036854775809", f"{NOT_A_NUMBER}: 1e-9223372036854775809"),
        ("", f"{NOT_A_NUMBER}: "),
    ],
)
def test_a_number_out_of_range(aws: Answers, number: str, expected: str) -> None:
    item = {"pk": {"S": "a"}, "n": {"N": number}}
    put = aws.refusal("PutItem", {"TableName": "hash", "Item": item})
    assert put == f"1 validation error detected: {expected}"
    assert aws.refusal("GetItem", {"TableName": "hash", "Key": {"pk": {"N": number}}}) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("abc", f"{NOT_A_NUMBER}: abc"),
        ("", NOT_A_NUMBER),
        ("1e126", OVERFLOW),
        ("1e2147483647", UNDERFLOW),
    ],
)
def test_the_older_services_read_numbers_as_java_does(
    aws: Answers, number: str, expected: str
) -> None:
    write = {"PutRequest": {"Item": {"pk": {"S": "a"}, "n": {"N": number}}}}
    assert aws.refusal("BatchWriteItem", {"RequestItems": {"hash": [write]}}) == expected


def test_a_zero_may_have_any_exponent_in_range(aws: Answers) -> None:
    aws("PutItem", {"TableName": "hash", "Item": {"pk": {"S": "a"}, "n": {"N": "0e125"}}})
    assert aws("GetItem", {"TableName": "hash", "Key": {"pk": {"S": "a"}}})["Item"]["n"] == {
        "N": "0"
    }
