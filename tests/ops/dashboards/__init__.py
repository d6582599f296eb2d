"""Tests of dashboards and alarms as code.

cloudformation_alarms: test_cloudwatch_alarms.py
cloudwatch_body: test_cloudwatch_alarms.py
design_dashboard: test_live_dashboard.py
grafana: test_live_dashboard.py
monitored_design: test_design_alarms.py
panels: test_live_dashboard.py
planned_alarm: test_design_alarms.py
prometheus_rules: test_firing_alarms.py
runbooks: test_design_alarms.py
terraform_alarms: test_cloudwatch_alarms.py
"""
