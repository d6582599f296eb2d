"""TagResource, UntagResource and ListTagsForResource, for alarms and dashboards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from stator.engine.companions.cloudwatch.metric_fields import INVALID_VALUE
from stator.engine.companions.companion import CompanionCall, CompanionOperation
from stator.engine.companions.records import CompanionRecords
from stator.errors import CompanionRefused
from stator.model.scope import Scope

_KIND: Final = "tags"
_MOST_TAGS: Final = 50
_RESERVED: Final = "aws:"


class ResourceTags:
    """The tags of resources, by ARN. ``exists`` says whether there is a resource with an ARN."""

    def __init__(self, records: CompanionRecords) -> None:
        self._records = records
        self.exists: Callable[[Scope, str], bool] = lambda scope, arn: False
        self.operations: Mapping[str, CompanionOperation] = {
            "TagResource": self.tag_resource,
            "UntagResource": self.untag_resource,
            "ListTagsForResource": self.list_tags_for_resource,
        }

    def tag_resource(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        self.add(call.scope, self._arn(call, request), request["Tags"])
        return {}

    def untag_resource(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        arn = self._arn(call, request)
        tags = self._of(call.scope, arn)
        left = {key: value for key, value in tags.items() if key not in request["TagKeys"]}
        self._records.put(_KIND, call.scope, arn, {"version": 1, "tags": left})
        return {}

    def list_tags_for_resource(
        self, call: CompanionCall, request: dict[str, Any]
    ) -> dict[str, Any]:
        tags = self._of(call.scope, self._arn(call, request))
        return {"Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())]}

    def add(self, scope: Scope, arn: str, tags: list[dict[str, str]]) -> None:
        """Add tags to a resource. A tag with the key of an existing one replaces it."""
        for tag in tags:
            if tag["Key"].lower().startswith(_RESERVED):
                raise CompanionRefused(
                    INVALID_VALUE, f"Tag keys cannot begin with {_RESERVED}; {tag['Key']} does."
                )
        merged = {**self._of(scope, arn), **{tag["Key"]: tag["Value"] for tag in tags}}
        if len(merged) > _MOST_TAGS:
            raise CompanionRefused(INVALID_VALUE, f"A resource can have at most {_MOST_TAGS} tags.")
        self._records.put(_KIND, scope, arn, {"version": 1, "tags": merged})

    def forget(self, scope: Scope, arn: str) -> None:
        """Remove the tags of a resource that is deleted."""
        if self._of(scope, arn):
            self._records.delete(_KIND, scope, arn)

    def _of(self, scope: Scope, arn: str) -> dict[str, str]:
        record = self._records.get(_KIND, scope, arn)
        return {} if record is None else record["tags"]

    def _arn(self, call: CompanionCall, request: dict[str, Any]) -> str:
        arn: str = request["ResourceARN"]
        if not self.exists(call.scope, arn):
            raise CompanionRefused(
                "ResourceNotFoundException", f"There is no alarm or dashboard {arn}.", status=404
            )
        return arn
