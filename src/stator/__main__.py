"""The ``stator`` command. ``python -m stator`` runs it, too.

Ctrl-C ends it with exit status 130. The command's modules are imported inside the ``try`` block,
because Ctrl-C may come while they are being imported.
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
