"""Random DynamoDB programs: requests over a few keys, so that they meet the same items often."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TABLE = "compare"

CREATE: dict[str, Any] = {
    "TableName": TABLE,
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "g", "AttributeType": "S"},
        {"AttributeName": "l", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "global",
            "KeySchema": [
                {"AttributeName": "g", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
        {
            "IndexName": "include",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a"]},
        },
    ],
}

texts = st.sampled_from(["", "a", "b", "ab", "abc", "é", "\U0001d11e", "z" * 20])
numbers = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "2",
        "10",
        "1.5",
        "-0.25",
        "100",
        "12345678901234567890",
        "100000000000000000000",
    ]
)
binaries = st.sampled_from(["", "AA==", "AAE=", "/w=="])
scalars = st.one_of(
    texts.map(lambda v: {"S": v}),
    numbers.map(lambda v: {"N": v}),
    binaries.map(lambda v: {"B": v}),
    st.booleans().map(lambda v: {"BOOL": v}),
    st.just({"NULL": True}),
)
sets = st.one_of(
    st.lists(texts, min_size=1, max_size=3, unique=True).map(lambda v: {"SS": v}),
    st.lists(st.sampled_from(["1", "2", "-3", "10.5"]), min_size=1, max_size=3, unique=True).map(
        lambda v: {"NS": v}
    ),
    st.lists(binaries, min_size=1, max_size=2, unique=True).map(lambda v: {"BS": v}),
)
map_keys = st.sampled_from(["x", "y", "z"])
values: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.one_of(scalars, sets),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda v: {"L": v}),
        st.dictionaries(map_keys, inner, max_size=3).map(lambda v: {"M": v}),
    ),
    max_leaves=4,
)

partition_keys = st.sampled_from(["p", "q"]).map(lambda v: {"S": v})
sort_keys = st.sampled_from(["1", "2", "3", "-5", "10"]).map(lambda v: {"N": v})
keys = st.builds(lambda pk, sk: {"pk": pk, "sk": sk}, partition_keys, sort_keys)
index_texts = st.sampled_from(["g1", "g2"]).map(lambda v: {"S": v})
plain_names = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    item = dict(draw(keys))
    item.update(draw(st.dictionaries(plain_names, values, max_size=4)))
    if draw(st.booleans()):
        item["g"] = draw(index_texts)
    if draw(st.booleans()):
        item["l"] = draw(index_texts)
    return item


paths = st.one_of(
    st.sampled_from(["a", "b", "c", "d", "g", "l"]),
    st.builds(lambda name, key: f"{name}.{key}", plain_names, map_keys),
    st.builds(lambda name, index: f"{name}[{index}]", plain_names, st.integers(0, 2)),
)
conditions = st.recursive(
    st.one_of(
        st.builds(
            lambda p, op, v: f"{p} {op} {v}",
            paths,
            st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
            st.sampled_from([":v", ":w"]),
        ),
        st.builds(
            lambda f, p: f"{f}({p})",
            st.sampled_from(["attribute_exists", "attribute_not_exists"]),
            paths,
        ),
        st.builds(
            lambda f, p: f"{f}({p}, :v)", st.sampled_from(["begins_with", "contains"]), paths
        ),
        st.builds(lambda p, op: f"size({p}) {op} :n", paths, st.sampled_from(["=", "<", ">"])),
        st.builds(lambda p: f"{p} BETWEEN :v AND :w", paths),
        st.builds(lambda p: f"{p} IN (:v, :w)", paths),
        st.builds(lambda p: f"attribute_type({p}, :t)", paths),
        st.builds(lambda p, q: f"{p} = {q}", paths, paths),
    ),
    lambda inner: st.one_of(
        st.builds(lambda a, b: f"({a}) AND ({b})", inner, inner),
        st.builds(lambda a, b: f"({a}) OR ({b})", inner, inner),
        st.builds(lambda a: f"NOT ({a})", inner),
    ),
    max_leaves=3,
)
set_clauses = st.one_of(
    st.builds(lambda p: f"{p} = :v", paths),
    st.builds(lambda p, q: f"{p} = {q}", paths, paths),
    st.builds(lambda p, q, op: f"{p} = {q} {op} :n", paths, paths, st.sampled_from("+-")),
    st.builds(lambda p, q: f"{p} = if_not_exists({q}, :v)", paths, paths),
    st.builds(lambda p, q: f"{p} = list_append({q}, :v)", paths, paths),
)


@st.composite
def update_expressions(draw: st.DrawFn) -> str:
    sections = []
    for word, clauses in (
        ("SET", set_clauses),
        ("REMOVE", paths),
        ("ADD", paths.map(lambda p: f"{p} :v")),
        ("DELETE", paths.map(lambda p: f"{p} :v")),
    ):
        chosen = draw(st.lists(clauses, max_size=2)) if draw(st.integers(0, 2)) == 0 else []
        if chosen:
            sections.append(f"{word} {', '.join(chosen)}")
    return " ".join(sections) or "SET a = :v"


@st.composite
def used_values(draw: st.DrawFn, *texts: str) -> dict[str, Any]:
    """Values for exactly the placeholders that the expressions use."""
    joined = " ".join(texts)
    given: dict[str, Any] = {}
    if ":v" in joined:
        given[":v"] = draw(values)
    if ":w" in joined:
        given[":w"] = draw(values)
    if ":n" in joined:
        given[":n"] = {"N": draw(st.sampled_from(["0", "1", "2", "-1.5"]))}
    if ":t" in joined:
        given[":t"] = {"S": draw(st.sampled_from(["S", "N", "L", "M", "SS", "BOOL"]))}
    return {"ExpressionAttributeValues": given} if given else {}


@st.composite
def puts(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    request: dict[str, Any] = {"TableName": TABLE, "Item": draw(items())}
    if draw(st.integers(0, 2)) == 0:
        text = draw(conditions)
        request |= {"ConditionExpression": text, **draw(used_values(text))}
    request["ReturnValues"] = draw(st.sampled_from(["NONE", "ALL_OLD"]))
    return "PutItem", request


@st.composite
def deletes(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    request: dict[str, Any] = {"TableName": TABLE, "Key": draw(keys)}
    if draw(st.integers(0, 2)) == 0:
        text = draw(conditions)
        request |= {"ConditionExpression": text, **draw(used_values(text))}
    request["ReturnValues"] = draw(st.sampled_from(["NONE", "ALL_OLD"]))
    return "DeleteItem", request


@st.composite
def updates(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    update = draw(update_expressions())
    condition = draw(conditions) if draw(st.integers(0, 3)) == 0 else ""
    request: dict[str, Any] = {"TableName": TABLE, "Key": draw(keys), "UpdateExpression": update}
    if condition:
        request["ConditionExpression"] = condition
    request |= draw(used_values(update, condition))
    request["ReturnValues"] = draw(
        st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
    )
    return "UpdateItem", request


@st.composite
def gets(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    request: dict[str, Any] = {"TableName": TABLE, "Key": draw(keys)}
    if draw(st.booleans()):
        request["ProjectionExpression"] = ", ".join(
            draw(st.lists(paths, min_size=1, max_size=3, unique=True))
        )
    return "GetItem", request


sort_tests = st.sampled_from(
    [
        "",
        " AND sk = :k",
        " AND sk < :k",
        " AND sk <= :k",
        " AND sk > :k",
        " AND sk >= :k",
        " AND sk BETWEEN :k AND :m",
    ]
)


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    index = draw(st.sampled_from([None, "global", "local", "include"]))
    request: dict[str, Any] = {"TableName": TABLE, "ScanIndexForward": draw(st.booleans())}
    given: dict[str, Any] = {
        ":p": draw(partition_keys if index in (None, "local") else index_texts)
    }
    text = "pk = :p" if index in (None, "local") else "g = :p"
    if index in (None, "global"):
        test = draw(sort_tests)
        text += test
        if ":k" in test:
            given[":k"] = draw(sort_keys)
        if ":m" in test:
            given[":m"] = {"N": "7"}
    elif index == "local" and draw(st.booleans()):
        text += " AND begins_with(l, :k)"
        given[":k"] = draw(st.sampled_from([{"S": "g"}, {"S": "g1"}]))
    request["KeyConditionExpression"] = text
    if index:
        request["IndexName"] = index
    if draw(st.booleans()):
        request["Limit"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 3)) == 0:
        filter_text = draw(
            st.sampled_from(["a = :v", "attribute_exists(a)", "size(a) > :n", "a <> :v"])
        )
        request["FilterExpression"] = filter_text
        given |= draw(used_values(filter_text)).get("ExpressionAttributeValues", {})
    if draw(st.integers(0, 3)) == 0:
        request["Select"] = draw(st.sampled_from(["COUNT", "ALL_ATTRIBUTES"]))
    request["ExpressionAttributeValues"] = given
    return "Query", request


@st.composite
def scans(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    request: dict[str, Any] = {"TableName": TABLE}
    index = draw(st.sampled_from([None, "global", "local", "include"]))
    if index:
        request["IndexName"] = index
    if draw(st.booleans()):
        text = draw(conditions)
        request |= {"FilterExpression": text, **draw(used_values(text))}
    return "Scan", request


@st.composite
def transactions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    actions = []
    for _ in range(draw(st.integers(1, 3))):
        kind, (_, request) = draw(
            st.one_of(
                st.tuples(st.just("Put"), puts()),
                st.tuples(st.just("Delete"), deletes()),
                st.tuples(st.just("Update"), updates()),
            )
        )
        request.pop("ReturnValues", None)
        if draw(st.booleans()):
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        actions.append({kind: request})
    return "TransactWriteItems", {"TransactItems": actions}


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    writes: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            writes.append({"PutRequest": {"Item": draw(items())}})
        else:
            writes.append({"DeleteRequest": {"Key": draw(keys)}})
    return "BatchWriteItem", {"RequestItems": {TABLE: writes}}


requests = st.one_of(
    puts(),
    puts(),
    updates(),
    updates(),
    deletes(),
    gets(),
    queries(),
    scans(),
    transactions(),
    batches(),
)
Program = list[tuple[str, dict[str, Any]]]
programs: st.SearchStrategy[Program] = st.lists(requests, min_size=1, max_size=25)
