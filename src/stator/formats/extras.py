"""Imports optional libraries of the formats; knows which extra of Stator installs each."""

from __future__ import annotations

import importlib
from typing import Any

from stator.errors import ConfigurationError

_EXTRAS = {
    "amazon": ("Amazon Ion", "ion"),
    "pyarrow": ("pyarrow", "arrow"),
    "zstandard": ("zstd", "blobs"),
}


def library(module: str) -> Any:
    """Import an optional library.

    Raises ConfigurationError, naming the extra, if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        name, extra = _EXTRAS[module.partition(".")[0]]
        raise ConfigurationError(
            f"{name} is not installed", hint=f"pip install 'stator[{extra}]'"
        ) from None


def pyarrow(module: str = "pyarrow") -> Any:
    """Import pyarrow or one of its modules."""
    return library(module)
