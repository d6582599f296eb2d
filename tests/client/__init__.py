"""Tests of ``stator.client``. Where the tests of each module are:

async_client: test_calls.py, test_connections.py
async_credentials: test_credentials.py
connections: test_connections.py
credentials: test_credentials.py
endpoint: test_connections.py
exchange: test_calls.py
factory: test_connections.py
replies: test_connections.py
retry: test_calls.py, test_request_pace.py
service_router: test_connections.py
signer: test_signing.py
sync_client: test_calls.py, test_connections.py
"""
