"""Checks of a command line before the command runs.

They refuse options without an effect, NaN and infinity, and folders that do not exist. Other errors
in values are found where the values are used, so that Python callers get the same errors.
"""
