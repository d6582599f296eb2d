"""Tests of ``stator.cli.watch``, and of the commands that write dashboards and alarms."""
