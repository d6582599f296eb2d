"""The ``stator`` command, also as ``python -m stator``.

Its modules are imported inside the handler of Ctrl-C, which may come before they are loaded.
"""

import sys

_INTERRUPTED = 130


def main() -> None:
    try:
        from stator.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
