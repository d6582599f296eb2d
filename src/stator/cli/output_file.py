"""Writing what a command made to a file, with an error that says why it could not be."""

from __future__ import annotations

from pathlib import Path

from stator.errors import ConfigurationError


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        hint = (
            f"make the folder {path.parent}"
            if not path.parent.is_dir()
            else "choose another file with --out"
        )
        raise ConfigurationError(
            f"{path} cannot be written: {error.strerror or error}", hint=hint
        ) from None
