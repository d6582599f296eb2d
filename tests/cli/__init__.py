"""Tests of ``stator.cli``: every command is run as a user runs it.

app_file: ../pipeline/test_work_command.py
bulk_commands: test_bulk.py
commands.check: test_check.py
commands.copy: test_bulk.py
commands.cost: test_cost.py
commands.demo: ../demo/test_demo.py
commands.diff: test_infer_and_diff.py
commands.docs: test_docs.py
commands.export: test_bulk.py
commands.export_design: test_export_design.py
commands.infer: test_infer_and_diff.py
commands.load: test_bulk.py
commands.new: test_new.py
commands.parked: ../pipeline/test_work_command.py
commands.plan: test_plan.py
commands.serve: test_serve.py
commands.top: ../pipeline/test_work_command.py
commands.verify: test_verify.py
commands.views: ../pipeline/views/test_views_command.py
commands.work: ../pipeline/test_work_command.py
design_errors: test_plan.py
design_file: test_plan.py
git_lock: test_cost.py
layouts_view: test_plan.py
live_tables: test_infer_and_diff.py
main: test_main.py
options: test_main.py
output: test_main.py
plan_markdown: test_plan.py
plan_view: test_plan.py
progress_bar: test_plan_verify.py
register: test_main.py
stop_signal: test_stop_signal.py
verification_view: test_plan_verify.py
worker_processes: ../pipeline/test_work_command.py
"""
