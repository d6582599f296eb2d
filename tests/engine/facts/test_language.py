"""What AWS takes for an expression, and the words in which it refuses the rest.

Sources: the tests that Scylla's Alternator runs on AWS, and DynamoDB Local, whose expression code
is AWS's own.
"""

from __future__ import annotations

import pytest

from .subject import Subject, attributes, refusal

MISUSED = "The function is not allowed to be used this way in an expression; function: "
REDUNDANT = "The expression has redundant parentheses;"
TOO_MANY_OPERATORS = "The expression contains too many operators; operator count: 301"


def refused_projection(subject: Subject, expression: str) -> str:
    request = subject.request(ProjectionExpression=expression)
    return refusal(subject.engine, "GetItem", request).removeprefix(
        "Invalid ProjectionExpression: "
    )


# -- names, values, indexes


def test_a_name_begins_with_a_letter(subject: Subject) -> None:
    assert (
        subject.refused_update("SET _123 = :v", {":v": 1})
        == 'Syntax error; token: "_", near: "SET _123"'
    )
    assert subject.refused_update("SET a = _f(b)") == 'Syntax error; token: "_", near: "= _f"'
    assert (
        subject.refused_condition("a._b = :v", {":v": 1}) == 'Syntax error; token: "_", near: "._b"'
    )
    assert refused_projection(subject, "_a") == 'Syntax error; token: "_", near: "_a"'
    subject.update("SET A1_ = :v", {":v": 1})
    assert subject.get() == attributes(p="p", A1_=1)


def test_a_placeholder_may_begin_with_any_of_its_characters(subject: Subject) -> None:
    for name in ("_", "1", "1a", "_a1"):
        subject.update(
            f"SET #{name} = :{name}",
            {f":{name}": name},
            ExpressionAttributeNames={f"#{name}": "any !.="},
        )
        assert subject.get() == attributes(p="p", **{"any !.=": name})


def test_a_list_index_is_a_plain_number_that_fits_32_bits(subject: Subject) -> None:
    subject.put(a=[1, 2])
    assert subject.get(ProjectionExpression="a [ 1 ]") == attributes(a=[2])
    assert refused_projection(subject, "a[01]") == 'Syntax error; token: "1", near: "01]"'
    subject.update("SET a[2147483647] = :v", {":v": 3})
    too_far = "List index is not within the allowable range; index: [2147483648]"
    assert subject.refused_update("SET a[2147483648] = :v", {":v": 3}) == too_far
    assert subject.refused_condition("a[2147483648] = :v", {":v": 3}) == too_far
    assert refused_projection(subject, "a[2147483648]") == too_far


def test_a_path_has_at_most_32_parts(subject: Subject) -> None:
    subject.put()
    assert subject.get(ProjectionExpression="a" + ".b" * 31) == {}
    too_deep = "The document path has too many nesting levels; nesting levels: 33"
    deep = "a" + ".b" * 32
    assert refused_projection(subject, deep) == too_deep
    assert subject.refused_condition(f"attribute_exists({deep})") == too_deep
    assert subject.refused_update(f"REMOVE {deep}") == too_deep
    assert subject.refused_update(f"SET a = {deep}") == too_deep


# -- functions


@pytest.mark.parametrize("expression", ["if_not_exists(a, b) = :v", "size(list_append(a, b)) > :v"])
def test_the_functions_of_updates_are_none_of_conditions(subject: Subject, expression: str) -> None:
    name = "if_not_exists" if "if_not" in expression else "list_append"
    answer = f"The function is not allowed in a condition expression; function: {name}"
    assert subject.refused_condition(expression, {":v": 1}) == answer


@pytest.mark.parametrize("name", ["size", "attribute_exists", "contains"])
def test_the_functions_of_conditions_are_none_of_updates(subject: Subject, name: str) -> None:
    answer = f"The function is not allowed in an update expression; function: {name}"
    assert subject.refused_update(f"SET a = {name}(b)") == answer


@pytest.mark.parametrize(
    "expression",
    [
        "list_append(list_append(l, l), l)",
        "list_append(l, list_append(l, l))",
        "if_not_exists(a, list_append(l, l))",
        "list_append(l, l) + n",
        "n - list_append(l, l)",
    ],
)
def test_list_append_is_never_a_part_of_a_value(subject: Subject, expression: str) -> None:
    assert subject.refused_update(f"SET a = {expression}") == MISUSED + "list_append"


def test_if_not_exists_may_stand_in_another(subject: Subject) -> None:
    subject.put(b=[1])
    subject.update(
        "SET a = if_not_exists(x, if_not_exists(y, b)), c = list_append(if_not_exists(c, b), b)"
    )
    assert subject.get() == attributes(p="p", a=[1], b=[1], c=[1, 1])


def test_the_leftmost_problem_is_the_one_reported(subject: Subject) -> None:
    reserved = "Attribute name is a reserved keyword; reserved keyword: name"
    assert subject.refused_condition("size(a) AND dog(a)") == MISUSED + "size"
    assert subject.refused_condition("dog(a) AND size(a)") == "Invalid function name; function: dog"
    assert subject.refused_condition("name = :v AND dog(a)", {":v": 1}) == reserved
    assert subject.refused_condition("dog(name)") == "Invalid function name; function: dog"
    assert subject.refused_update("SET a = :v SET name = :v", {":v": 1}) == reserved
    assert subject.refused_condition("dog(a) AND ((a = b))") == REDUNDANT


# -- parentheses and operators


@pytest.mark.parametrize(
    "expression", ["(b)", "(b + :v)", "b + (:v)", "((b) + (:v))", "if_not_exists((b), (:v))"]
)
def test_a_value_may_stand_in_parentheses(subject: Subject, expression: str) -> None:
    subject.put(b=1)
    subject.update(f"SET a = {expression}, c = :v", {":v": 1})
    assert subject.get() == attributes(p="p", a=1 if "+" not in expression else 2, b=1, c=1)


@pytest.mark.parametrize(
    "expression", ["((b))", "((b + :v))", "b + ((:v))", "if_not_exists(b, ((:v)))"]
)
def test_doubled_parentheses_round_a_value_are_redundant(subject: Subject, expression: str) -> None:
    assert subject.refused_update(f"SET a = {expression}, c = :v", {":v": 1}) == REDUNDANT


@pytest.mark.parametrize(
    ("expression", "near"),
    [
        ("b + :v + :v", ":v + :v"),
        ("(b + :v) + :v", ") + :v"),
        ("b + (:v + :v)", ":v + :v"),
        ("if_not_exists(b, :v + :v)", ":v + :v"),
    ],
)
def test_a_sum_has_two_operands_and_is_none(subject: Subject, expression: str, near: str) -> None:
    assert (
        subject.refused_update(f"SET a = {expression}", {":v": 1})
        == f'Syntax error; token: "+", near: "{near}"'
    )


@pytest.mark.parametrize(
    "condition",
    [
        "(a)=(:v)",
        "(a = :v)",
        "((a = :v) AND (a = :v))",
        "NOT (a) <> :v",
        "NOT NOT (NOT (NOT a = :v))",
    ],
)
def test_single_parentheses_are_welcome_in_conditions(subject: Subject, condition: str) -> None:
    subject.put(a=1)
    assert subject.holds(condition, {":v": 1})


@pytest.mark.parametrize(
    "condition",
    [
        "((a = :v))",
        "((a)) = :v",
        "a = ((:v))",
        "((NOT a = :v))",
        "a = :v OR ((a = :v))",
        "size(((a))) = :v",
    ],
)
def test_doubled_parentheses_in_conditions_are_redundant(subject: Subject, condition: str) -> None:
    assert subject.refused_condition(condition, {":v": 1}) == REDUNDANT


def test_three_hundred_operators_are_enough(subject: Subject) -> None:
    subject.put(a=1, b=2)
    assert subject.holds("a<b" + " or a<b" * 149)
    assert subject.refused_condition("a<b" + " or a<b" * 150) == TOO_MANY_OPERATORS
    calls = " or ".join(["attribute_exists(b)"] * 151)
    assert subject.refused_condition(calls) == TOO_MANY_OPERATORS
    sums = ",".join(f"a{i}=b+b" for i in range(301))
    assert subject.refused_update(f"SET {sums}") == TOO_MANY_OPERATORS
    subject.update("REMOVE " + ",".join(f"a{i}" for i in range(400)))


def test_groups_may_be_nested_as_deep_as_operators_allow(subject: Subject) -> None:
    subject.put(a=1, b=2)
    assert subject.holds("a<b " + "or (a<b " * 149 + ")" * 149)
    assert subject.holds("not (" * 298 + "a<b" + ")" * 298)
    assert subject.holds("not " * 298 + "a<b")


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("(" * 4096, 'Syntax error; token: "<EOF>", near: "("'),
        ("(" * 2046 + "a<b" + ")" * 2046, REDUNDANT),
        ("not " * 1000 + "a<b", TOO_MANY_OPERATORS),
        ("a<b " + "or (a<b " * 454 + ")" * 454, TOO_MANY_OPERATORS),
        ("a < " + "f(" * 1355 + "b" + ")" * 1355, "Invalid function name; function: f"),
        (
            "(" * 15_000,
            "Expression size has exceeded the maximum allowed size; expression size: 15000",
        ),
    ],
)
def test_absurdly_deep_conditions_are_refused_like_any_other(
    subject: Subject, condition: str, answer: str
) -> None:
    assert subject.refused_condition(condition) == answer


def test_absurdly_deep_values_are_refused_like_any_other(subject: Subject) -> None:
    assert subject.refused_update("SET a = " + "(" * 2000 + "b" + ")" * 2000) == REDUNDANT
    nested = "SET a = " + "if_not_exists(b," * 240 + "c" + ")" * 240
    subject.put(c=1)
    subject.update(nested)
    assert subject.get() == attributes(p="p", a=1, c=1)


def test_the_error_of_a_long_update_omits_its_size(subject: Subject) -> None:
    padding = " " * 4096
    assert (
        subject.refused_update(f"SET a = {padding}b")
        == "Expression size has exceeded the maximum allowed size;"
    )


# -- operands


def test_in_takes_a_hundred_options(subject: Subject) -> None:
    subject.put(a=99)
    values = {f":v{i}": i for i in range(101)}
    assert subject.holds(
        f"a IN ({', '.join(list(values)[:100])})",
        {name: values[name] for name in list(values)[:100]},
    )
    answer = "The IN operator is provided with too many operands; number of operands: 101"
    assert subject.refused_condition(f"a IN ({', '.join(values)})", values) == answer


def test_if_not_exists_takes_two_different_operands(subject: Subject) -> None:
    assert subject.refused_update("SET a = if_not_exists(b, b)") == (
        "The first operand must be distinct from the remaining operands for this operator or "
        "function; operator: if_not_exists, first operand: [b]"
    )


def test_attribute_type_looks_at_values_too(subject: Subject) -> None:
    subject.put(s="text")
    assert subject.holds("attribute_type(:v, :n)", {":v": 1, ":n": "N"})
    assert subject.holds("attribute_type(size(s), :n)", {":n": "N"})
    assert not subject.holds("attribute_type(:v, :n)", {":v": "1", ":n": "N"})
    assert subject.refused_condition("attribute_type(:v, :v)", {":v": 1}) == (
        "Incorrect operand type for operator or function; operator or function: "
        "attribute_type, operand type: N"
    )


def test_size_looks_at_values_too_but_not_at_numbers(subject: Subject) -> None:
    subject.put(s="text")
    assert subject.holds("size(:v) < size(s)", {":v": "abc"})
    answer = (
        "Incorrect operand type for operator or function; operator or function: size, "
        "operand type: N"
    )
    assert subject.refused_condition("size(:v) > :v", {":v": 1}) == answer
    assert subject.refused_condition("size(size(s)) > :v", {":v": 1}) == answer
    assert subject.refused_condition("a < " + "size(" * 140 + "s" + ")" * 140) == answer
