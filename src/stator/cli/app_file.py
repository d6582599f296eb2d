"""Finds the stream app or the ingest that a command line names, and opens the app's tables.

The name has the form ``work.py``, ``work.py:app`` or ``package.module:app``. The commands ``top``,
``parked`` and ``views`` open the tables with ``app_connection``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar

from stator.cli.checks.data_folder import check_exists
from stator.cli.design_file import (
    APP_HINT,
    DesignFile,
    DesignTarget,
    choices,
    parse_target,
    run_target,
)
from stator.errors import ConfigurationError, DesignFileWrong, ResourceNotFound
from stator.pipeline.ingest.app import Ingest
from stator.pipeline.workers.app import StreamApp
from stator.tables.connection import connect
from stator.tables.db import Db

A = TypeVar("A", StreamApp, Ingest)
_A: Final = {"StreamApp": "a", "Ingest": "an"}
MISSING_AT: Final = "--at is missing; write --at http://localhost:8000 or aws://region"


def load_app(text: str) -> StreamApp:
    """Return the stream app that ``text`` names.

    The design's plan keeps the base keys of the design's lock file, if there is one.
    """
    return _load(text, StreamApp)


def load_ingest(text: str) -> Ingest:
    """Return the ingest that ``text`` names, as ``load_app`` does."""
    return _load(text, Ingest)


def _load(text: str, kind: type[A]) -> A:
    target = parse_target(text, APP_HINT)
    module = run_target(target)
    app = _app_in(module, target, kind)
    file = DesignFile(app.design, target.file or Path(module.__file__ or Path.cwd() / "app.py"))
    app.design.keep_to(file.frozen)
    return app


def _app_in(module: ModuleType, target: DesignTarget, kind: type[A]) -> A:
    what = kind.__name__
    apps = {name: value for name, value in vars(module).items() if isinstance(value, kind)}
    path = str(target.file) if target.file else str(module.__file__ or target.module)
    if target.name is not None:
        if target.name in apps:
            return apps[target.name]
        problem = (
            f"{target.name} is not {_A[what]} {what}"
            if hasattr(module, target.name)
            else f"the file defines no {target.name}"
        )
        hint = (
            f"write {choices(target, apps)}"
            if apps
            else f'write `{target.name} = {what}(design, "name")`'
        )
        raise DesignFileWrong(path, 1, problem, hint=hint)
    distinct = {id(app): app for app in apps.values()}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if distinct:
        raise ConfigurationError(
            f"{path} defines several apps: {', '.join(apps)}",
            hint=f"name one: {choices(target, apps)}",
        )
    raise DesignFileWrong(
        path, 1, f"the file defines no {what}", hint=f'write `app = {what}(design, "name")`'
    )


@contextmanager
def app_connection(app: StreamApp, address: str, prefix: str) -> Iterator[Db]:
    """Open a Db on the tables of an app. The tables must exist.

    Raises ConfigurationError if the address is a folder that does not exist, or if a call in the
    ``with`` block finds that a table is missing.
    """
    check_exists(address)
    with connect(app.design, address, prefix=prefix) as db:
        try:
            yield db
        except ResourceNotFound as error:
            missing = _missing_tables(db)
            if not missing:
                raise
            raise ConfigurationError(
                f"there is no table {missing[0]} at {address}",
                hint="check the address, the prefix and, for an http address, the region"
                " (AWS_DEFAULT_REGION); `stator work --ensure` creates the tables",
            ) from error


def _missing_tables(db: Db) -> list[str]:
    schema = db.context.schema
    missing = []
    for name in dict.fromkeys((*schema.tables, schema.place.table)):
        try:
            db.call("DescribeTable", {"TableName": name})
        except ResourceNotFound:
            missing.append(name)
    return missing
