"""The AWS services that the engine answers besides DynamoDB, as their clients address them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CompanionService:
    """A service: its name and version in botocore's data, its X-Amz-Target, and its signing name.

    ``invalid_code`` is the error code for a request that does not fit the service's model.
    ``has_query_protocol`` says whether older SDKs send forms (``Action=...&Version=...``).
    """

    name: str
    version: str
    target: str
    signing_name: str
    invalid_code: str
    has_query_protocol: bool = False


CLOUDWATCH: Final = CompanionService(
    name="cloudwatch",
    version="2010-08-01",
    target="GraniteServiceVersion20100801",
    signing_name="monitoring",
    invalid_code="ValidationError",
    has_query_protocol=True,
)
AUTO_SCALING: Final = CompanionService(
    name="application-autoscaling",
    version="2016-02-06",
    target="AnyScaleFrontendService",
    signing_name="application-autoscaling",
    invalid_code="ValidationException",
)
