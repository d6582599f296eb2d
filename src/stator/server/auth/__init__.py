"""Identifies the callers of the server: SigV4 authorization, credentials files, signature checks.

``authenticator`` is the entry point: it finds the caller's account and region from a request.
Requests are signed in ``stator.client.signer``. Permissions are not checked.
"""
