"""Companions: services other than DynamoDB that the engine answers, on the same data and clock.

``companions`` is the entry point: it finds the service and the operation, checks the request
against botocore's model (``request_check``), and ends minutes. ``metrics`` keeps aggregates, and
``cloudwatch`` is CloudWatch. A further service implements ``companion.Companion``.
"""
