"""``python -m cavity``: the same as the command ``cavity``."""

import sys

from cavity.cli import main

sys.exit(main())
