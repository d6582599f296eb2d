"""Parts of ``stator dashboards``, ``alarms`` and ``top --tables``: options, and a view."""
