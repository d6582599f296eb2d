"""Checks of a command line before the command works: options without an effect, numbers that are
none, and folders that do not exist.

What is wrong with the values themselves is checked where they are used, so that Python callers get
the same errors.
"""
