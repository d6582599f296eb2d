"""What tables use at this moment, from CloudWatch and DescribeTable. ``table_use`` reads it."""
