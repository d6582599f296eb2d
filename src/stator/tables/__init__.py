"""The typed data layer: entities in and out of DynamoDB by declared pattern, on the embedded engine and on AWS alike."""
