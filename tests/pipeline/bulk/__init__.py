"""Tests of ``stator.pipeline.bulk``. Modules tested elsewhere than in a file of their own name:

checksum: test_copy.py
s3: test_export.py
targets: test_load_formats.py
job.interrupted_threads: test_interrupted_jobs.py
export.destinations: test_export.py
export.field_columns: test_export_parquet.py
export.paged_source: test_export.py
export.parquet_schema: test_export_parquet.py
export.parts: test_damaged_files.py
export.snapshots: test_export.py
export.sources: test_export.py
job.dead_letters: test_load_faults.py
job.journal: test_damaged_files.py
job.key_paces: test_throttled_load.py
job.pending_rows: test_load_faults.py
job.rows_ahead: test_rows_ahead.py
job.daily_hours: test_daily_hours.py
job.window: test_window.py
job.write_job: test_load_faults.py
job.writers: test_load_faults.py
load.attribute_types: test_load_formats.py
load.entity_rows: test_entities.py
load.estimate: ../../cli/test_bulk.py
load.flat_rows: test_flat_rows.py
load.inputs: test_load_formats.py
load.letter_rows: test_letter_rows.py
load.lines: test_load_formats.py
load.load: test_load_formats.py
load.metrics: ../../cli/test_bulk.py
load.readers: test_load_formats.py
job.row_condition: test_load_faults.py
load.columns: test_columns.py
load.entity_columns: test_entity_columns.py
job.governor: test_governor.py
export.export: test_export.py
"""
