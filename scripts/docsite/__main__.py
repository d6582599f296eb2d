"""``python -m docsite``: builds the documentation site."""

from __future__ import annotations

import sys

from docsite.build import main

sys.exit(main())
