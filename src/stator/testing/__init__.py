"""For tests: an engine per test, virtual time, and boto3 wired straight into an engine.

pytest finds the fixtures ``stator_engine``, ``stator_clock``, ``stator_connect``,
``dynamodb_client`` and ``dynamodb_resource`` once Stator is installed (``plugin``). ``boto``
connects boto3 without a socket. The engine itself is ``stator.engine``, the clock ``stator.clock``.
"""

from stator.clock import VirtualClock
from stator.testing.boto import boto3_client, boto3_resource, boto3_session, wire

__all__ = ["VirtualClock", "boto3_client", "boto3_resource", "boto3_session", "wire"]
