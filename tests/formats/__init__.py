"""Tests of ``stator.formats``.

Modules tested elsewhere than in a file of their own name:

    arrow: ../pipeline/bulk/test_load_formats.py
    arrow_items: ../pipeline/bulk/test_columns.py
    parquet_columns: test_parquet.py
    plain: ../pipeline/bulk/test_columns.py
    exact_json: ../pipeline/bulk/test_load_formats.py
    dynamodb_json: test_dynamodb_json.py, ../engine/recovery/test_data_formats.py
    ion: ../engine/recovery/test_data_formats.py
    extras: ../engine/recovery/test_imports.py
"""
