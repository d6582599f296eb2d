"""Tests of ``stator.design.infer``. Where a module's tests are:

words: test_infer.py
key_text: test_infer.py
table_keys: test_infer.py, test_published_tables.py
groups: test_infer.py
fields: test_infer.py
entity_guess: test_infer.py, test_published_tables.py
inference: test_infer.py
design_file: test_infer.py, test_any_table.py
fit: test_any_table.py
proposal: test_any_table.py
"""
