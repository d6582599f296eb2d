"""Those who give credentials to a program on AWS, on loopback: the endpoint of a container, the
metadata service of an instance, STS and the SSO portal. Requests and replies are those of the EC2,
ECS, STS and SSO documentation."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from stator.server.auth.credentials import Credential

ROLE = "arn:aws:iam::123456789012:role/reader"


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    form: dict[str, str]


class Refused(Exception):
    """Every issuer's answer to it: XML, as STS's; the others' askers look at the status only."""

    reply = (
        b'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>'
        b"<Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error>"
        b"<RequestId>1</RequestId></ErrorResponse>"
    )


Answer = Callable[["Issuer", Asked], tuple[str, bytes]]


@dataclass
class Issuer:
    """Gives new credentials each time, and makes them ``known`` to the server under test."""

    answer: Answer
    known: dict[str, Credential]
    lifetime_seconds: float = 3600.0
    ahead_seconds: float = 0.0
    # What the asker has to show; changed by a test that rotates it.
    secret: str = "show-this"
    refuses: bool = False
    issued: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    entered: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    was_stuck: bool = False

    def __post_init__(self) -> None:
        self.release.set()
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.ahead_seconds)

    def issue(self) -> tuple[Credential, datetime]:
        self.entered.set()
        if not self.release.wait(10):
            self.was_stuck = True
        if self.refuses:
            raise Refused
        with self._lock:
            number = len(self.issued)
            made = Credential(
                "issued",
                f"ASIA{number:016}",
                "123456789012",
                f"secret/{number}+",
                f"token=={number}",
            )
            self.known[made.access_key_id] = made
            self.issued.append(made.access_key_id)
        return made, self.now() + timedelta(seconds=self.lifetime_seconds)

    def revoke(self) -> None:
        """What was given so far no longer lets anybody in."""
        for access_key_id in self.issued:
            self.known.pop(access_key_id, None)

    # -- the server

    def __enter__(self) -> Self:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *_: Any) -> None:
                pass

            def do_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                form = {name: values[0] for name, values in parse_qs(body).items()}
                asked = Asked(self.command, self.path, headers, form)
                issuer.asked.append(asked)
                try:
                    kind, reply = issuer.answer(issuer, asked)
                    status = 200
                except Refused:
                    status, kind, reply = 403, "text/xml", Refused.reply
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_PUT = do_POST = do_any

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.authority = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.authority}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _json(value: Any) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def container(issuer: Issuer, asked: Asked) -> tuple[str, bytes]:
    if asked.path != "/role" or asked.headers.get("authorization") != issuer.secret:
        raise Refused
    made, until = issuer.issue()
    return _json(
        {
            "AccessKeyId": made.access_key_id,
            "SecretAccessKey": made.secret_access_key,
            "Token": made.session_token,
            "Expiration": _shown(until),
        }
    )


def instance(issuer: Issuer, asked: Asked) -> tuple[str, bytes]:
    """IMDSv2: nothing is told without a session token, and that is asked for with PUT."""
    base = "/latest/meta-data/iam/security-credentials/"
    if asked.path == "/latest/api/token":
        if asked.method != "PUT" or "x-aws-ec2-metadata-token-ttl-seconds" not in asked.headers:
            raise Refused
        return "text/plain", issuer.secret.encode()
    if asked.headers.get("x-aws-ec2-metadata-token") != issuer.secret:
        raise Refused
    if asked.path == base:
        return "text/plain", b"reader"
    assert asked.path == base + "reader"
    made, until = issuer.issue()
    return _json(
        {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": made.access_key_id,
            "SecretAccessKey": made.secret_access_key,
            "Token": made.session_token,
            "Expiration": _shown(until),
        }
    )


def sts(issuer: Issuer, asked: Asked) -> tuple[str, bytes]:
    action = asked.form["Action"]
    if action == "AssumeRoleWithWebIdentity":
        if asked.form["WebIdentityToken"] != issuer.secret or "authorization" in asked.headers:
            raise Refused
    elif "Credential=AKIASOURCE/" not in asked.headers.get("authorization", ""):
        raise Refused
    assert asked.form["RoleArn"] == ROLE
    made, until = issuer.issue()
    return "text/xml", (
        f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>'
        f"<Credentials><AccessKeyId>{made.access_key_id}</AccessKeyId>"
        f"<SecretAccessKey>{made.secret_access_key}</SecretAccessKey>"
        f"<SessionToken>{made.session_token}</SessionToken>"
        f"<Expiration>{_shown(until)}</Expiration></Credentials>"
        f"<AssumedRoleUser><Arn>{ROLE}/x</Arn><AssumedRoleId>AROA:x</AssumedRoleId>"
        f"</AssumedRoleUser></{action}Result><ResponseMetadata><RequestId>1</RequestId>"
        f"</ResponseMetadata></{action}Response>"
    ).encode()


def sso(issuer: Issuer, asked: Asked) -> tuple[str, bytes]:
    parts = urlsplit(asked.path)
    wanted = parse_qs(parts.query)
    if asked.headers.get("x-amz-sso_bearer_token") != issuer.secret:
        raise Refused
    assert parts.path == "/federation/credentials"
    assert wanted == {"role_name": ["reader"], "account_id": ["123456789012"]}
    made, until = issuer.issue()
    return _json(
        {
            "roleCredentials": {
                "accessKeyId": made.access_key_id,
                "secretAccessKey": made.secret_access_key,
                "sessionToken": made.session_token,
                "expiration": int(until.timestamp() * 1000),
            }
        }
    )
