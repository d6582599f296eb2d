"""Benchmarks of Stator beside its peers, on one machine and in one run.

``python -m bench`` compares servers over HTTP; ``bench.clients`` compares Python clients,
``bench.codecs`` encoders, ``bench.bulk_load`` loaders of a Parquet file. ``bench.streams`` and
``bench.planner`` measure Stator alone. Each takes ``--help``. No test asserts a time.
"""
