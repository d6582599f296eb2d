"""Builds wheels with compiled hot modules: ``STATOR_COMPILE=1 pip wheel .``

Without the variable, or without a C compiler, the wheel is pure Python: the same code, only slower.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import compile as compiler


class CompilingHook(BuildHookInterface):
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        # orjson for its types, so that the result equals that of `make compile`.
        return ["mypy>=1.13", "setuptools>=75", "orjson>=3.10"] if _is_enabled() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not _is_enabled():
            return
        self._folder = tempfile.TemporaryDirectory()
        target = Path(self._folder.name)
        for path in compiler.build(target):
            build_data["force_include"][str(target / path)] = str(path)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def _is_enabled() -> bool:
    if os.environ.get("STATOR_COMPILE", "0") in ("", "0"):
        return False
    if not compiler.has_compiler():
        print("no C compiler or no Python headers found: the wheel will be pure Python")
        return False
    return True
