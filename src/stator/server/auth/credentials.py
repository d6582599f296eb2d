"""The callers that a server accepts, read from an AWS shared credentials file.

    [alice]
    aws_access_key_id = AKIAALICE
    aws_secret_access_key = wJalr...
    aws_session_token = ...          ; optional: every request must then carry it
    account_id = 111122223333        ; optional: the account whose tables alice uses

Clients can read the same file (``AWS_SHARED_CREDENTIALS_FILE``), so tests need only one file.
Profiles without keys (roles, SSO) are skipped.
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass, field
from pathlib import Path

from stator.errors import ConfigurationError
from stator.model.scope import DEFAULT_ACCOUNT

_ACCOUNT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Credential:
    profile: str
    access_key_id: str
    account: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def account_of_key(access_key_id: str) -> str:
    """Return the account of a key id when there is no credentials file.

    A key id of twelve digits is itself the account id, so tests can use several accounts. All other
    key ids belong to the default account.
    """
    is_account = (
        len(access_key_id) == _ACCOUNT_DIGITS
        and access_key_id.isdecimal()
        and access_key_id.isascii()
    )
    return access_key_id if is_account else DEFAULT_ACCOUNT


def read_credentials(path: str | Path) -> dict[str, Credential]:
    """Read a credentials file. Return its credentials by access key id."""
    parser = configparser.ConfigParser(interpolation=None, default_section="\0none")
    try:
        parser.read_string(Path(path).read_text(encoding="utf-8"), source=str(path))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"the credentials file {path} does not exist",
            hint="write one with [profile], aws_access_key_id and aws_secret_access_key lines",
        ) from error
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise ConfigurationError(
            f"the credentials file {path} cannot be read: {str(error).splitlines()[0]}",
            hint="write it as an AWS shared credentials file (INI)",
        ) from error
    return _by_key_id(path, parser)


def _by_key_id(path: str | Path, parser: configparser.ConfigParser) -> dict[str, Credential]:
    found: dict[str, Credential] = {}
    for profile in parser.sections():
        credential = _credential(path, profile, parser[profile])
        if credential is None:
            continue
        if credential.access_key_id in found:
            raise ConfigurationError(
                f"{path}: the profiles {found[credential.access_key_id].profile} and {profile} "
                f"have the same aws_access_key_id",
                hint="use a different key id in each profile",
            )
        found[credential.access_key_id] = credential
    if not found:
        raise ConfigurationError(
            f"the credentials file {path} has no profile with keys",
            hint="add aws_access_key_id and aws_secret_access_key to a [profile]",
        )
    return found


def _credential(
    path: str | Path, profile: str, section: configparser.SectionProxy
) -> Credential | None:
    key_id = section.get("aws_access_key_id", "").strip()
    secret = section.get("aws_secret_access_key", "").strip()
    if not key_id and not secret:
        return None
    if not key_id or not secret:
        missing = "aws_secret_access_key" if key_id else "aws_access_key_id"
        raise ConfigurationError(
            f"{path}: the profile {profile} has no {missing}", hint=f"add a line {missing} = ..."
        )
    return Credential(
        profile=profile,
        access_key_id=key_id,
        account=_account(path, profile, section, key_id),
        secret_access_key=secret,
        session_token=section.get("aws_session_token", "").strip(),
    )


def _account(
    path: str | Path, profile: str, section: configparser.SectionProxy, key_id: str
) -> str:
    # AWS's own tools write aws_account_id in this file; both spellings are read.
    account = section.get("account_id", section.get("aws_account_id", "")).strip()
    if not account:
        return account_of_key(key_id)
    if len(account) != _ACCOUNT_DIGITS or not account.isdecimal():
        raise ConfigurationError(
            f"{path}: the account id {account!r} of the profile {profile} is not valid",
            hint="use an account id of 12 digits",
        )
    return account
