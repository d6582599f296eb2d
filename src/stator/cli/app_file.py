"""Finds a stream app: ``work.py``, ``work.py:app`` or ``package.module:app``."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from stator.cli.design_file import APP_HINT, DesignTarget, choices, parse_target, run_target
from stator.design.plan.lock_file import lock_path, read_lock
from stator.errors import ConfigurationError, DesignFileWrong
from stator.pipeline.workers.app import StreamApp


def load_app(text: str) -> StreamApp:
    """Return the app that ``text`` names.

    The plan of its design starts from the lock file next to the app's file, if there is one.
    """
    target = parse_target(text, APP_HINT)
    module = run_target(target)
    app = _app_in(module, target)
    folder = (target.file or Path(module.__file__ or Path.cwd() / "app.py")).parent
    app.design.keep_to(read_lock(lock_path(app.design.name, folder)))
    return app


def _app_in(module: ModuleType, target: DesignTarget) -> StreamApp:
    apps = {name: value for name, value in vars(module).items() if isinstance(value, StreamApp)}
    path = str(target.file) if target.file else str(module.__file__ or target.module)
    if target.name is not None:
        if target.name in apps:
            return apps[target.name]
        problem = (
            f"{target.name} is not a StreamApp"
            if hasattr(module, target.name)
            else f"the file defines no {target.name}"
        )
        hint = (
            f"write {choices(target, apps)}"
            if apps
            else f'write `{target.name} = StreamApp(design, "name")`'
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
        path, 1, "the file defines no StreamApp", hint='write `app = StreamApp(design, "name")`'
    )
