"""Tests of ``stator.testing``.

boto: test_plugin.py
partition_heat: ../engine/partitions/test_state.py
"""
