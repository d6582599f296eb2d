"""Tests of the typed data layer, on the embedded engine, over HTTP and awaited.

Where a module's tests are:

argument_rules: test_wrong_use.py
async_runner: test_async.py
blocks: test_wrong_sweep.py
blobs.blobs: test_blobs.py, test_blob_faults.py
blobs.compression: test_blobs.py
blobs.stores: test_blobs.py
codegen.item_writer: test_generated.py
codegen.key_writer: test_generated.py
connection: test_connection.py
context: test_faults.py
db: test_db.py, test_items.py, test_async.py
db_operations: test_db.py
dry_run: test_dry_run.py
gather_threads: test_runner.py, ../client/test_closing.py
lifecycle: test_lifecycle.py
list_arguments: test_wrong_use.py
observers: test_observing.py
operation: ../patterns/test_counter.py
read_operations: test_items.py, test_reads.py
reads.adaptive_spread: test_index_shards.py
reads.cursors: test_reads.py
reads.item_list: test_notebooks.py
reads.items: test_items.py
reads.locator: test_items.py, test_identities.py
reads.page_stream: test_reads.py
reads.pattern_read: test_reads.py
reads.scan: test_reads.py
reads.snapshot: test_snapshot.py
runner: test_runner.py, test_faults.py
schema.entity_map: test_schema.py, test_generated.py
schema.key_identity: test_key_identity.py
schema.missing_attributes: test_condition_defaults.py, ../pipeline/views/test_missing_attributes.py
schema.place: ../patterns/test_counter.py
schema.schema: test_schema.py
shards.adaptive_shards: ../patterns/test_adaptive_series.py, ../patterns/test_adaptive_counter.py
shards.contributor_insights: ../patterns/test_contributor_insights.py
shards.index_shards: test_index_shards.py
shards.hot_key: ../patterns/test_adaptive_series.py
shards.shard_change: ../patterns/test_adaptive_series.py
shards.write_rate: ../patterns/test_adaptive_series.py
telemetry: test_observing.py
work: test_runner.py
write_operations: test_items.py, test_pattern_write.py
writes.batches: test_batches.py
writes.computed_update: test_soft_delete.py, test_upcast_collisions.py
writes.expressions: test_items.py, test_updates.py, test_condition_defaults.py
writes.guarded.guard_condition: test_guarded.py
writes.guarded.guarded_write: test_guarded.py
writes.guarded.outcomes: test_guarded.py
writes.guarded.price: test_guarded.py
writes.guarded.statement_text: test_guarded.py
writes.guarded.writer: test_guarded.py
writes.open_update: test_updates.py
writes.pattern_write: test_pattern_write.py
writes.patches: test_patches.py
writes.recorder: test_updates.py, test_items.py
writes.sender: test_faults.py
writes.shape_upgrade: test_versions.py
writes.statements: test_items.py
writes.transaction_tokens: test_transaction_tokens.py
writes.transactions: test_transactions.py
writes.unique_guards: test_unique_guards.py
writes.update_statement: test_updates.py
writes.write_units: test_pattern_write.py
writes.writes: test_items.py
"""
