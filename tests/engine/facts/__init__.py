"""Facts about AWS that public suites and DynamoDB Local agree on."""
