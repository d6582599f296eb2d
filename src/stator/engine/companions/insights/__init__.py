"""Contributor Insights: counts the keys that requests use most, minute by minute.

Requests note keys where units are charged (``engine.tables.traffic``). ``insight_store`` takes them
into a ``top_keys`` sketch for each rule and minute, and keeps it with the data. ``insight_rules``
answers CloudWatch's DescribeInsightRules and GetInsightRuleReport. The switch itself is DynamoDB's
UpdateContributorInsights (``engine.operations.control.contributor_insights``).
"""
