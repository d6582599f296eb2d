"""DynamoDB's data: values, numbers, sizes, keys, table descriptions and limits."""
