"""Scaling: alarms, decisions, schedules and limits.

cron: test_scheduled_action.py
"""
