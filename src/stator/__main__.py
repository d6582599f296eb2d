"""``python -m stator`` is the ``stator`` command."""

from stator.cli.main import main

if __name__ == "__main__":
    main()
