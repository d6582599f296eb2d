"""Contributor Insights end to end: the switch, its rules, and reports with real counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.engine.companions.insights.contributor_key import ContributorKeys
from stator.engine.tables.key_schema import KeyAttribute, KeySchema, key_encoder
from stator.errors import SlowDown
from stator.model.numbers import decode_ordered, encode_ordered, normalise
from stator.testing import throttle

from .bench import START, Bench, refused

INDEX = {
    "IndexName": "by-g",
    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}


class InsightBench(Bench):
    """A bench with a table that has a sort key and an index."""

    def create_sorted(self, name: str = "orders", **options: Any) -> None:
        self.create(
            name,
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
                {"AttributeName": "g", "AttributeType": "S"},
            ],
            GlobalSecondaryIndexes=[INDEX],
            **options,
        )

    def switch(self, action: str = "ENABLE", **options: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.dynamodb.update_contributor_insights(
            **{"TableName": "orders", "ContributorInsightsAction": action, **options}
        )
        return answer

    def status(self, **options: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.dynamodb.describe_contributor_insights(
            **{"TableName": "orders", **options}
        )
        del answer["ResponseMetadata"]
        return answer

    def listed(self, **options: Any) -> list[tuple[str, str, str]]:
        answer = self.dynamodb.list_contributor_insights(**options)
        return [
            (each["TableName"], each.get("IndexName", ""), each["ContributorInsightsStatus"])
            for each in answer["ContributorInsightsSummaries"]
        ]

    def write(self, pk: str, sk: int = 0, g: str = "g") -> None:
        item = {"pk": {"S": pk}, "sk": {"N": f"{sk}"}, "g": {"S": g}}
        self.dynamodb.put_item(TableName="orders", Item=item)

    def read(self, pk: str, sk: int = 0) -> None:
        key = {"pk": {"S": pk}, "sk": {"N": f"{sk}"}}
        self.dynamodb.get_item(TableName="orders", Key=key, ConsistentRead=True)

    def rules(self) -> list[str]:
        found = self.cloudwatch.describe_insight_rules()["InsightRules"]
        return [rule["Name"] for rule in found]

    def report(self, kind: str, **options: Any) -> dict[str, Any]:
        [name] = [each for each in self.rules() if f"-{kind}" in each]
        answer: dict[str, Any] = self.cloudwatch.get_insight_rule_report(
            RuleName=name,
            StartTime=self.moment(0),
            EndTime=self.moment(3600),
            Period=options.pop("Period", 60),
            **options,
        )
        return answer

    def contributors(self, kind: str, **options: Any) -> dict[tuple[str, ...], float]:
        found = self.report(kind, **options)["Contributors"]
        return {tuple(each["Keys"]): each["ApproximateAggregateValue"] for each in found}


@pytest.fixture
def bench() -> Iterator[InsightBench]:
    made = InsightBench()
    made.create_sorted()
    yield made
    made.engine.close()


# -- the switch


def test_a_table_starts_without_insights(bench: InsightBench) -> None:
    assert bench.status() == {"TableName": "orders", "ContributorInsightsStatus": "DISABLED"}
    assert bench.listed() == []
    answer = bench.switch("DISABLE")
    assert answer["ContributorInsightsStatus"] == "DISABLED"


def test_enabling_takes_time_and_creates_rules(bench: InsightBench) -> None:
    bench.engine.lifecycle.delay_seconds = 5.0
    assert bench.switch()["ContributorInsightsStatus"] == "ENABLING"
    assert bench.status()["ContributorInsightsStatus"] == "ENABLING"
    bench.clock.advance(5)
    found = bench.status()
    assert found["ContributorInsightsStatus"] == "ENABLED"
    assert found["ContributorInsightsMode"] == "ACCESSED_AND_THROTTLED_KEYS"
    assert found["LastUpdateDateTime"].timestamp() == START
    names = [f"DynamoDBContributorInsights-{kind}-orders-{START * 1000}" for kind in
             ("PKC", "PKT", "SKC", "SKT")]  # fmt: skip
    assert found["ContributorInsightsRuleList"] == names
    assert bench.rules() == names
    assert bench.listed() == [("orders", "", "ENABLED")]
    assert bench.switch()["ContributorInsightsStatus"] == "ENABLED", "nothing changes"
    assert bench.switch("DISABLE")["ContributorInsightsStatus"] == "DISABLING"
    assert bench.listed() == [("orders", "", "DISABLING")]
    bench.clock.advance(5)
    assert bench.status()["ContributorInsightsStatus"] == "DISABLED"
    assert "ContributorInsightsRuleList" not in bench.status()
    assert bench.listed() == [] and bench.rules() == []


def test_a_mode_of_throttled_keys_has_half_the_rules(bench: InsightBench) -> None:
    bench.switch()
    bench.clock.advance(10)
    answer = bench.switch(ContributorInsightsMode="THROTTLED_KEYS")
    assert answer["ContributorInsightsStatus"] == "ENABLING"
    kept = [f"DynamoDBContributorInsights-{kind}-orders-{START * 1000}" for kind in ("PKT", "SKT")]
    assert bench.status()["ContributorInsightsRuleList"] == kept
    bench.switch()
    assert bench.status()["ContributorInsightsMode"] == "ACCESSED_AND_THROTTLED_KEYS"


def test_an_index_has_insights_of_its_own(bench: InsightBench) -> None:
    bench.switch(IndexName="by-g")
    assert bench.listed(TableName="orders") == [("orders", "by-g", "ENABLED")]
    assert bench.rules() == [
        f"DynamoDBContributorInsights-{kind}-orders-by-g-{START * 1000}" for kind in ("PKC", "PKT")
    ]
    bench.dynamodb.update_table(
        TableName="orders", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-g"}}]
    )
    bench.dynamodb.describe_table(TableName="orders")
    assert bench.rules() == []
    with refused("ResourceNotFoundException", "Index: by-g not found for table: orders"):
        bench.status(IndexName="by-g")


def test_what_does_not_exist_is_refused(bench: InsightBench) -> None:
    with refused("ResourceNotFoundException", "Table: none not found"):
        bench.switch(TableName="none")
    with refused("ResourceNotFoundException", "Table: none not found"):
        bench.listed(TableName="none")
    with refused("ValidationException", "Member must satisfy enum value set"):
        bench.switch("START")
    with refused("ResourceNotFoundException", "no rule named"):
        bench.cloudwatch.get_insight_rule_report(
            RuleName="other", StartTime=bench.moment(0), EndTime=bench.moment(60), Period=60
        )


def test_a_table_that_is_being_created_is_refused() -> None:
    bench = InsightBench({"status_delay_seconds": 5.0})
    bench.create_sorted()
    with refused("ValidationException", "TableStatus must be ACTIVE to enable"):
        bench.switch()
    bench.engine.close()


def test_the_quota_of_rules_fails_what_exceeds_it(bench: InsightBench) -> None:
    for number in range(25):
        bench.create_sorted(f"t{number:02}")
        bench.switch(TableName=f"t{number:02}")
    assert bench.switch()["ContributorInsightsStatus"] == "ENABLING"
    found = bench.status()
    assert found["ContributorInsightsStatus"] == "FAILED"
    assert found["FailureException"]["ExceptionName"] == "LimitExceededException"
    assert len(bench.rules()) == 100
    bench.switch("DISABLE", TableName="t00")
    assert bench.status()["ContributorInsightsStatus"] == "FAILED"
    bench.switch()
    assert bench.status()["ContributorInsightsStatus"] == "ENABLED"


def test_the_list_comes_in_pages(bench: InsightBench) -> None:
    bench.switch()
    bench.switch(IndexName="by-g")
    first = bench.dynamodb.list_contributor_insights(MaxResults=1)
    assert "IndexName" not in first["ContributorInsightsSummaries"][0]
    assert bench.listed(MaxResults=1, NextToken=first["NextToken"]) == [
        ("orders", "by-g", "ENABLED")
    ]
    with refused("ValidationException", "Invalid NextToken"):
        bench.listed(NextToken="x")


# -- reports


def test_accesses_count_three_for_a_write_unit_and_one_for_a_read_unit(bench: InsightBench) -> None:
    bench.switch()
    bench.switch(IndexName="by-g")
    for number in range(4):
        bench.write("hot", number % 2, g=f"g{number}")
    bench.read("hot", 1)
    bench.read("cold")
    bench.clock.advance(60)
    answer = bench.report("PKC-orders-17")
    assert answer["KeyLabels"] == ["pk"]
    assert answer["AggregateValue"] == 14.0
    assert bench.contributors("PKC-orders-17") == {("hot",): 13.0, ("cold",): 1.0}
    assert bench.contributors("SKC") == {("hot", "0"): 6.0, ("hot", "1"): 7.0, ("cold", "0"): 1.0}
    # A changed key replaces an entry of the index: one unit to delete, one to write.
    on_index = bench.contributors("PKC-orders-by-g")
    assert on_index[("g0",)] == 6.0 and on_index[("g3",)] == 3.0


def test_entries_of_a_page_count_key_by_key(bench: InsightBench) -> None:
    for name in ("a", "b"):
        bench.write(name)
    bench.switch()
    bench.dynamodb.scan(TableName="orders", ConsistentRead=True)
    bench.dynamodb.query(
        TableName="orders",
        KeyConditionExpression="pk = :a",
        ExpressionAttributeValues={":a": {"S": "a"}},
        ConsistentRead=True,
    )
    assert bench.contributors("PKC") == {("a",): 1.5, ("b",): 0.5}


def test_minutes_are_added_up_and_shown_by_period(bench: InsightBench) -> None:
    bench.switch()
    for writes in (1, 3, 2):
        for _ in range(writes):
            bench.write("hot")
        bench.write("other")
        bench.clock.advance(60)
    metrics = ["MaxContributorValue", "Maximum", "UniqueContributors"]
    answer = bench.report("PKC", Metrics=metrics, MaxContributorCount=1)
    [hot] = answer["Contributors"]
    assert hot["ApproximateAggregateValue"] == 18.0
    assert [point["ApproximateValue"] for point in hot["Datapoints"]] == [3.0, 9.0, 6.0]
    assert [point["MaxContributorValue"] for point in answer["MetricDatapoints"]] == [3.0, 9.0, 6.0]
    assert bench.contributors("PKC", OrderBy="Maximum")[("hot",)] == 9.0
    wide = bench.report("PKC", Metrics=metrics, Period=180)["MetricDatapoints"]
    assert [(point["MaxContributorValue"], point["Maximum"]) for point in wide] == [(18.0, 9.0)]


def test_throttled_keys_are_counted_but_not_back_pressure() -> None:
    bench = InsightBench({"throughput": "enforced"})
    bench.create_sorted()
    bench.switch(ContributorInsightsMode="THROTTLED_KEYS")
    bench.switch(IndexName="by-g")
    throttle(bench.engine, "orders", requests=3)
    for number in range(5):
        try:
            bench.engine.call(
                "PutItem",
                {"TableName": "orders", "Item": {"pk": {"S": "hot"}, "sk": {"N": f"{number}"}}},
            )
        except SlowDown:
            continue
    assert bench.contributors("PKT-orders-17") == {("hot",): 3.0}
    assert bench.contributors("SKT") == {("hot", str(each)): 1.0 for each in range(3)}
    assert bench.contributors("PKT-orders-by-g") == {}
    bench.engine.close()


def test_an_index_without_units_counts_as_no_key_of_its_own() -> None:
    bench = InsightBench({"throughput": "enforced"})
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 1000}
    few = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 1}
    bench.create(
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
        ],
        BillingMode="PROVISIONED",
        ProvisionedThroughput=units,
        GlobalSecondaryIndexes=[{**INDEX, "ProvisionedThroughput": few}],
    )
    bench.switch()
    bench.switch(IndexName="by-g")
    refusals = 0
    for number in range(20):
        item = {"pk": {"S": f"{number}"}, "g": {"S": "same"}}
        try:
            bench.engine.call("PutItem", {"TableName": "orders", "Item": item})
        except SlowDown:
            refusals += 1
    assert refusals > 0
    assert bench.contributors("PKT-orders-17") == {}
    assert bench.contributors("PKT-orders-by-g") == {}
    bench.engine.close()


def test_counts_survive_a_restart(tmp_path: Path) -> None:
    bench = InsightBench({"path": str(tmp_path), "durability": "process"})
    bench.create_sorted()
    bench.switch()
    bench.write("hot")
    bench.clock.advance(60)
    bench.engine.sweep()
    bench.write("hot")
    bench.reopen()
    bench.write("hot")
    assert bench.contributors("PKC") == {("hot",): 9.0}
    bench.clock.advance(16 * 86_400)
    bench.engine.sweep()
    assert bench.contributors("PKC") == {}
    bench.engine.close()


def test_a_disabled_table_notes_nothing(bench: InsightBench) -> None:
    bench.switch()
    bench.write("hot")
    bench.switch("DISABLE")
    table = next(iter(bench.engine.database.catalog.all()))
    assert table.traffic.keys is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Period": 90}, "multiple of 60"),
        ({"MaxContributorCount": 101}, "between 1 and 100"),
        ({"OrderBy": "Average"}, "Sum or Maximum"),
        ({"Metrics": ["Median"]}, "not Median"),
    ],
)
def test_a_report_is_refused(bench: InsightBench, options: dict[str, Any], message: str) -> None:
    bench.switch()
    with refused("InvalidParameterValue", message):
        bench.report("PKC", **options)


# -- keys and their bytes

_TEXT = st.text(min_size=1, max_size=8)
_NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=4).map(
    lambda value: normalise(f"{value:f}")
)


@given(_NUMBERS)
def test_numbers_decode(text: str) -> None:
    assert decode_ordered(encode_ordered(text)) == text


@given(_TEXT, st.one_of(_TEXT, st.just("\0\0")), _NUMBERS)
def test_keys_decode(partition: str, sort: str, number: str) -> None:
    for kind, value in (("S", sort), ("N", number)):
        schema = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("s", kind),))
        key = key_encoder(schema, b"d123456")({"p": {"S": partition}, "s": {kind: value}})
        keys = ContributorKeys(schema)
        assert keys.values(keys.partition(key)) == [partition]
        # An index entry goes on with the key of the item.
        assert keys.values(keys.whole(key + b"\0\x01x")) == [partition, value]
