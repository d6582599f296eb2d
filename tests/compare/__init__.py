"""The same requests on this engine and on DynamoDB Local, with their answers compared."""
