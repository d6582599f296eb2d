"""Tests of ``stator.design.infer``.

design_file: test_infer.py
fields: test_infer.py
groups: test_infer.py
inference: test_infer.py
key_text: test_infer.py
table_keys: test_infer.py
"""
