"""Tests of ``stator.server``. Where the tests of each module are:

auth.authenticator: test_authentication.py
auth.authorization: test_authentication.py
auth.credentials: test_signatures.py
auth.signature: test_signatures.py
auth.verifier: test_signatures.py
dispatcher: test_routing.py
http.compression: test_compression.py
http.connection: test_http.py, test_connection_properties.py
http.context: test_lifetime.py
http.freed_memory: test_freed_memory.py
http.http_server: test_lifetime.py
http.limits: test_lifetime.py
http.reply: test_replies.py
http.request: test_request.py
http.settlement: test_durability.py
options: test_tls.py
protocols: test_engine_over_http.py
run: test_lifetime.py
"""
