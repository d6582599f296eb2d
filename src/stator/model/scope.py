"""Whose tables a request is about."""

from __future__ import annotations

from dataclasses import dataclass

# The account of AWS's own examples.
DEFAULT_ACCOUNT = "123456789012"
DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Scope:
    """An account and a region, as the credential scope of a signed request names them."""

    account: str = DEFAULT_ACCOUNT
    region: str = DEFAULT_REGION

    def table_arn(self, table_name: str) -> str:
        return f"arn:aws:dynamodb:{self.region}:{self.account}:table/{table_name}"
