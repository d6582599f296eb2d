"""The engine's tests, through its API wherever possible.

``facts`` and ``conformance`` hold behaviour of AWS that public suites recorded. ``tables`` tests
the control plane; ``streams``, ``partiql`` and ``recovery`` test those features. ``tests/compare``
runs random programs on this engine and on DynamoDB Local.

Where modules without a test file of their own are tested:

    engine: test_items.py
    operation: test_items.py
    database: test_crash.py
    keyspace: test_items.py
    lifecycle: tables/test_lifecycle.py
    expiry: streams/test_expiry.py
    housekeeper: streams/test_expiry.py
    tables.contributor_insights: companions/test_contributor_insights.py
    operations.control.contributor_insights: companions/test_contributor_insights.py
    tables.traffic: companions/test_table_metrics.py
    partitions.traffic_log: companions/test_table_metrics.py
    items.actions: test_items.py
    items.capacity: test_items.py
    items.item_update: facts/test_updates.py, test_request_cost.py
    items.key_ranges: test_items.py
    items.page_spread: partitions/test_enforced.py
    items.pages: test_items.py
    items.records: test_items.py
    items.request_tokens: test_items.py
    items.stale_reader: partitions/test_stale_reads.py
    items.transaction_locks: test_items.py
    items.transactions: facts/test_limits.py
    items.write_observer: streams/test_replay.py
    items.write_path: test_crash.py
    items.write_report: test_items.py
    requests.expression_parameters: facts/test_language.py
    requests.fast_shapes: conformance/test_reported_errors.py
    requests.java_text: tables/test_members.py
    requests.read_parameters: conformance/test_reported_errors.py
    requests.shape_rules: conformance/test_reported_errors.py
    requests.shapes: conformance/test_reported_errors.py
    operations.get_item: test_items.py
    operations.put_item: test_items.py
    operations.update_item: facts/test_updates.py
    operations.delete_item: test_items.py
    operations.query: test_items.py
    operations.scan: test_items.py
    operations.batch_get_item: test_items.py
    operations.batch_write_item: test_items.py
    operations.single_write: test_items.py
    operations.transact_get_items: test_items.py
    operations.transact_write_items: test_items.py
    operations.execute_statement: partiql/test_writes.py
    operations.batch_execute_statement: partiql/test_batch.py
    operations.execute_transaction: partiql/test_transaction.py
    operations.get_records: streams/test_shard_iterator.py
    operations.get_shard_iterator: streams/test_shard_iterator.py
    operations.control.account: tables/test_account.py
    operations.control.backups: recovery/test_backups.py
    operations.control.continuous_backups: recovery/test_point_in_time.py
    operations.control.exports: recovery/test_exports.py
    operations.control.imports: recovery/test_imports.py
    operations.control.streams: streams/test_shards.py
    operations.control.tables: tables/test_create_table.py
    operations.control.tags: tables/test_tags.py
    operations.control.time_to_live: tables/test_time_to_live.py
    operations.control.update_table: tables/test_update_table.py
"""
