"""``python -m hilltop`` is the ``hilltop`` command."""

import sys

from hilltop.cli.main import main

sys.exit(main())
