"""For tests: an engine per test, and boto3 wired straight into it.

``pytest`` users get the ``stator_engine``, ``stator_clock``, ``dynamodb_client`` and ``dynamodb_resource`` fixtures by
installing Stator; see ``stator.testing.plugin``.
"""

from stator.clock import VirtualClock
from stator.testing.boto import boto3_client, boto3_resource, boto3_session, wire

__all__ = ["VirtualClock", "boto3_client", "boto3_resource", "boto3_session", "wire"]
