"""Finding the stream app that a command is about: ``work.py``, ``work.py:app`` or ``package.module:app``."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from stator.cli.design_file import DesignTarget, parse_target, run_target
from stator.design.plan.lock import lock_path, read_lock
from stator.errors import ConfigurationError, DesignFileWrong
from stator.pipeline.workers.app import StreamApp


def load_app(target: str) -> StreamApp:
    """The app, with its design kept to the lock file that stands beside it."""
    wanted = parse_target(target)
    module = run_target(wanted)
    app = _app_in(module, wanted)
    folder = (wanted.file or Path(module.__file__ or Path.cwd() / "app.py")).parent
    app.design.keep_to(read_lock(lock_path(app.design.name, folder)))
    return app


def _app_in(module: ModuleType, target: DesignTarget) -> StreamApp:
    apps = {name: value for name, value in vars(module).items() if isinstance(value, StreamApp)}
    path = str(target.file) if target.file else str(module.__file__ or target.module)
    if target.name is not None:
        if target.name not in apps:
            kind = "is not a StreamApp" if hasattr(module, target.name) else "is not in it"
            hint = (
                f"there is {', '.join(apps)}"
                if apps
                else f'write `{target.name} = StreamApp(design, "name")`'
            )
            raise DesignFileWrong(path, 1, f"{target.name} {kind}", hint=hint)
        return apps[target.name]
    different = {id(app): app for app in apps.values()}
    if len(different) == 1:
        return next(iter(different.values()))
    if different:
        raise ConfigurationError(
            f"there are several apps in {path}: {', '.join(apps)}",
            hint=f"say which: {' or '.join(f'{target}:{name}' for name in apps)}",
        )
    raise DesignFileWrong(
        path, 1, "there is no StreamApp in it", hint='write `app = StreamApp(design, "name")`'
    )
