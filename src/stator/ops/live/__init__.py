"""The present use of tables, from CloudWatch and DescribeTable. ``table_use`` reads it."""
