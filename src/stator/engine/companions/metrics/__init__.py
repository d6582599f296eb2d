"""Metrics: aggregates by the minute, the engine's recorder of them, and how long they are kept.

``traffic_recorder`` turns the traffic of tables (``engine.tables.traffic``) into the metrics of the
namespace AWS/DynamoDB. ``metric_store`` keeps them and those that users put. What CloudWatch makes
of them is in ``engine.companions.cloudwatch``.
"""
