"""Benchmarks: Stator and its peers, side by side on one machine, in one run. ``python -m bench --help``."""
