"""DynamoDB over HTTP: signing, connections, retries. Sync and async, with nothing between the request and the socket that need not be."""
