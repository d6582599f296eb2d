"""Tests of ``stator.pipeline.ingest``. Where a module is tested, if not in a file of its own name:

app: test_ingest_app.py
commit_marks: test_ingest_schedules.py, test_intake.py
dead_records: test_intake.py, test_kafka_ingest.py
values.decoders: test_ingest_app.py, test_intake.py
event_window: test_ingest_schedules.py, test_intake.py
event_writer: test_intake.py, test_ingest_schedules.py
explanation: test_ingest_app.py
routes.fold_route: test_intake.py, test_ingest_schedules.py
routes.folds: test_intake.py, test_ingest_schedules.py
routes.guards: test_intake.py
routes.handler_route: test_intake.py, test_ingest_schedules.py
intake: test_intake.py
kafka_source: test_kafka_ingest.py, test_kafka_crashes.py
metrics: test_kafka_ingest.py
options: test_ingest_app.py
routes.put_route: test_intake.py, test_ingest_schedules.py
values.registered_values: test_registered_values.py
routes.route: test_intake.py
running_ingest: test_kafka_ingest.py, test_kafka_crashes.py
values.schema_registry: test_registered_values.py
source_record: test_intake.py
topic_identity: test_kafka_ingest.py
"""
