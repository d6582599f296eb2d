"""Alarms: definitions, their evaluation at the end of minutes, history, and what they set off.

``alarm_checks`` checks a definition, ``evaluation`` decides a state from points, ``evaluator``
finds the points and carries a transition out, and ``alarm_store`` keeps alarms and history.
``alarm_operations`` has the operations. ``alarm_actions`` is where other services register.
"""
