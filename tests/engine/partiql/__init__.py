"""PartiQL, through its three operations.

changes: test_writes.py
conditions: test_selects.py
expressions: test_parser.py
keys: test_properties.py
keywords: test_parser.py
lexer: test_parser.py
next_token: test_selects.py
paths: test_selects.py
plan: test_properties.py
statements: test_properties.py
syntax: test_parser.py
values: test_parameters.py
"""
