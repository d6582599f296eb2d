"""Application Auto Scaling for DynamoDB: targets, policies, scheduled actions and activities.

``scaling_service`` is the companion. Three modules hold the operations (``target_operations``,
``policy_operations``, ``schedule_operations``), and ``scaling_store`` keeps what they define.
``scaler`` changes capacity at the ends of minutes: ``stator.model.scaling`` decides, alarms of the
CloudWatch companion (``policy_alarms``) say when to ask it, and ``target_capacity`` sends
UpdateTable.
"""
