"""CloudWatch: metrics, alarms and dashboards.

``cloudwatch`` lists the operations. A family of operations is a module each (``put_metric_data``,
``metric_statistics``, ``metric_data``, ``metric_list``, ``dashboards``, ``alarms``);
``statistics`` computes a statistic of a distribution, and ``expressions`` is metric math.
"""
