"""A bench with a provisioned table and a client of Application Auto Scaling."""

from __future__ import annotations

from typing import Any

from stator.testing import boto3_session

from .bench import Bench

TARGET = {
    "ServiceNamespace": "dynamodb",
    "ResourceId": "table/orders",
    "ScalableDimension": "dynamodb:table:WriteCapacityUnits",
}
READ_TARGET = {**TARGET, "ScalableDimension": "dynamodb:table:ReadCapacityUnits"}
INDEX_TARGET = {
    "ServiceNamespace": "dynamodb",
    "ResourceId": "table/orders/index/by-g",
    "ScalableDimension": "dynamodb:index:WriteCapacityUnits",
}


class ScalingBench(Bench):
    """A bench whose engine enforces throughput, unless ``options`` say otherwise."""

    def __init__(self, **options: Any) -> None:
        super().__init__({"throughput": "enforced", **options})

    def open(self) -> None:
        super().open()
        self.scaling = boto3_session(self.engine).client("application-autoscaling")

    def provision(self, read: int = 5, write: int = 5, **options: Any) -> None:
        units = {"ReadCapacityUnits": read, "WriteCapacityUnits": write}
        self.create(BillingMode="PROVISIONED", ProvisionedThroughput=units, **options)

    def register(self, least: int = 1, most: int = 50, **options: Any) -> str:
        request = {**TARGET, "MinCapacity": least, "MaxCapacity": most, **options}
        return str(self.scaling.register_scalable_target(**request)["ScalableTargetARN"])

    def put_policy(
        self, target: float = 70.0, *, place: dict[str, str] = TARGET, **options: Any
    ) -> dict[str, Any]:
        kind = "Read" if "Read" in place["ScalableDimension"] else "Write"
        answer: dict[str, Any] = self.scaling.put_scaling_policy(
            **place,
            PolicyName="steady",
            PolicyType="TargetTrackingScaling",
            TargetTrackingScalingPolicyConfiguration={
                "TargetValue": target,
                "PredefinedMetricSpecification": {
                    "PredefinedMetricType": f"DynamoDB{kind}CapacityUtilization"
                },
                **options,
            },
        )
        return answer

    def units(self, kind: str = "Write") -> int:
        table = self.dynamodb.describe_table(TableName="orders")["Table"]
        return int(table["ProvisionedThroughput"][f"{kind}CapacityUnits"])

    def minutes(self, *units: int) -> None:
        """Write so many units in each minute, evenly enough to pass, and end the minutes."""
        for asked in units:
            for second in range(60):
                for number in range(asked // 60 + (second < asked % 60)):
                    key = f"{self.clock.now()}-{number}"
                    self.engine.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": key}}})
                self.clock.advance(1)
            self.engine.sweep()

    def spike(self, units: int) -> None:
        """Write so many units in the first second of a minute, and end the minute."""
        for number in range(units):
            key = f"{self.clock.now()}-{number}"
            self.engine.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": key}}})
        self.clock.advance(60)
        self.engine.sweep()

    def activities(self, **options: Any) -> list[dict[str, Any]]:
        answer = self.scaling.describe_scaling_activities(ServiceNamespace="dynamodb", **options)
        found: list[dict[str, Any]] = answer["ScalingActivities"]
        return found

    def alarms(self) -> dict[str, dict[str, Any]]:
        """Return the alarms of the policy by their kind, such as AlarmHigh."""
        found = self.cloudwatch.describe_alarms(AlarmNamePrefix="TargetTracking-")["MetricAlarms"]
        return {alarm["AlarmName"].rsplit("-", 6)[1]: alarm for alarm in found}
