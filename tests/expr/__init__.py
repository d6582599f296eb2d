"""Tests of ``stator.expr``. Where the tests of each module are:

bind: test_language.py
compare: test_language.py
condition: test_language.py
key_condition: test_language.py
legacy: ../engine/facts/test_conditions.py, ../engine/facts/test_updates.py
lexer: test_language.py
names: test_language.py
overlap: test_language.py
parser: test_language.py
paths: test_language.py
reserved: test_language.py
tree: test_language.py
update: test_update.py
"""
