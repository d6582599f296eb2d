"""Who calls the server: SigV4 authorization, credentials files and signature checks.

``authenticator`` is the entry point: from a request to the caller's account and region. Signing
requests is the client's part (``stator.client.signer``); permissions are not checked here.
"""
