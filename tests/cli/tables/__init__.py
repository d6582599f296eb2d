"""Tests of ``stator.cli.tables``."""
