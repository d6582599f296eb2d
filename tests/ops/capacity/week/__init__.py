"""Schedules that are found in the use of past weeks.

day_groups: test_schedule.py
levels: test_schedule.py
"""
