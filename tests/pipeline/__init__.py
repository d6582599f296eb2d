"""Tests of ``stator.pipeline``. Where a module is tested, if not in a file of its own name:

workers.app: test_workers.py
workers.aws_lambda: test_lambda.py
workers.lambda_event: test_lambda.py
workers.lambda_batch: test_lambda_batch.py
workers.mapped_function: test_lambda_run.py
workers.group_state: test_workers.py, test_work_command.py, test_worker_errors.py
workers.metrics: test_work_command.py, test_worker_errors.py
workers.options: test_workers.py, test_set_aside.py
workers.worker: test_schedules.py, with simulation.py; test_worker_errors.py
workers.worker_threads: test_workers.py
workers.handlers.batch_delivery: test_workers.py, test_schedules.py, test_set_aside.py
workers.handlers.change: test_workers.py, test_stream_views.py
workers.handlers.change_handlers: test_handler_order.py, with simulated_handlers.py
workers.handlers.parked_retry: test_workers.py, test_work_command.py, test_set_aside.py
workers.handlers.parking: test_workers.py, test_schedules.py, test_set_aside.py
workers.handlers.set_aside_retry: test_set_aside.py, test_handler_order.py
workers.handlers.subscribers: test_workers.py, test_stream_views.py
workers.shards.balance: test_schedules.py
workers.shards.consumer: test_schedules.py, test_worker_errors.py
workers.shards.iterators: test_workers.py
workers.shards.lease_holder: test_schedules.py
workers.shards.leases: test_schedules.py
workers.shards.lineage: test_schedules.py
workers.shards.snapshot: test_workers.py
"""
