"""Tests of ``stator.testing``.

boto: test_plugin.py
"""
