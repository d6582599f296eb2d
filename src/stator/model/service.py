"""DynamoDB's service model, as botocore ships it: the shapes of every request and reply.

Only the data file is read; botocore's own machinery is not imported, which keeps start-up short.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import orjson

from stator.errors import UnknownOperation

# The operations of DynamoDB Streams, a second service with a target prefix of its own.
STREAMS_OPERATIONS = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})
TABLES_TARGET = "DynamoDB_20120810"
STREAMS_TARGET = "DynamoDBStreams_20120810"


def target_of(operation: str) -> str:
    """Return the X-Amz-Target header of an operation: ``DynamoDB_20120810.GetItem``."""
    return f"{STREAMS_TARGET if operation in STREAMS_OPERATIONS else TABLES_TARGET}.{operation}"


def unknown_operation(target: str) -> UnknownOperation:
    """Return the error for a target, or an operation's name, that is not served.

    AWS's own error for an unknown operation has no message, and SDKs then show "UnknownError". If
    AWS has the operation and only Stator lacks it, the returned error has a message that names it.
    """
    name = target.rpartition(".")[2]
    if target in (name, target_of(name)) and name in model_of(name).operations:
        return UnknownOperation(f"Stator does not support the operation {name}.")
    return UnknownOperation()


@dataclass(frozen=True, slots=True)
class ServiceModel:
    operations: dict[str, Any]
    shapes: dict[str, Any]
    metadata: dict[str, Any]

    def input_shape(self, operation: str) -> str:
        return str(self.operations[operation]["input"]["shape"])


def model_of(operation: str) -> ServiceModel:
    return service_model("dynamodbstreams") if operation in STREAMS_OPERATIONS else service_model()


@lru_cache(maxsize=8)
def service_model(service: str = "dynamodb", version: str = "2012-08-10") -> ServiceModel:
    resource = files("botocore").joinpath("data", service, version, "service-2.json.gz")
    model = orjson.loads(gzip.decompress(resource.read_bytes()))
    return ServiceModel(model["operations"], model["shapes"], model["metadata"])
