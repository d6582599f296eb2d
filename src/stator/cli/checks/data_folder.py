"""Refuses to read from a data folder that does not exist: opening it would create an empty one."""

from __future__ import annotations

import os

from stator.addresses import Address
from stator.errors import ConfigurationError

_SOURCE_HINT = "check the path; it is relative to the current folder"


def check_exists(address: str, hint: str = _SOURCE_HINT) -> None:
    """Raise ConfigurationError if an address is a folder that is missing or empty.

    Other addresses pass.
    """
    where = Address.parse(address)
    if where.is_new_folder:
        problem = (
            f"the folder {where.where} is empty"
            if os.path.exists(where.where)
            else f"there is no folder {where.where}"
        )
        raise ConfigurationError(problem, hint=hint)
