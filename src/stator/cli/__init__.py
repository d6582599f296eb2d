"""The ``stator`` command: one file per command, each of which parses, calls and shows.

``main`` knows the commands by name only and imports the one that is called. Data goes to stdout, notes
and errors to stderr. Exit codes: 0 done, 1 an error that is explained with a hint, 2 wrong usage,
130 interrupted.
"""
