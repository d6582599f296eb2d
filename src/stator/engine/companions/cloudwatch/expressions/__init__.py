"""Metric math: expressions over metrics, in GetMetricData and in alarms.

``parser`` turns a text into a tree (``syntax``), ``evaluation`` computes it over lines (``lines``)
with the functions of ``functions``, and ``search`` finds the metrics that SEARCH names. An error
says what is wrong with the expression; the request that has it adds where.

Source: CloudWatch User Guide, "Using math expressions with CloudWatch metrics".
"""
