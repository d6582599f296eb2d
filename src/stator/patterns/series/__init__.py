"""The time series: readings spread over buckets of time and shards, with optional roll-ups.

``series`` has the public class and its promises. Below it: ``layout`` (keys and items),
``directory`` (which buckets exist and their shards), with ``entries``, ``buckets`` and
``own_tables`` (how it is stored), ``placement`` (where a reading goes), ``writes`` (single and
batched), ``transactions`` (readings with roll-ups), ``reads`` (ranges over buckets and shards) and
``explanation`` (cost). The sums themselves are in ``patterns.rollups``.
"""
