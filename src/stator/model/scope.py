"""The scope of a request: the account and region that own its tables."""

from __future__ import annotations

from typing import NamedTuple

# The account of AWS's own examples.
DEFAULT_ACCOUNT = "123456789012"
DEFAULT_REGION = "us-east-1"


class Scope(NamedTuple):
    """An account and a region, as in the credential scope of a signed request.

    It is a tuple because every request looks up its tables by scope, and tuples hash and compare in
    C.
    """

    account: str = DEFAULT_ACCOUNT
    region: str = DEFAULT_REGION

    def table_arn(self, table_name: str) -> str:
        return f"arn:aws:dynamodb:{self.region}:{self.account}:table/{table_name}"
