"""``python -m mercer``: the command, where its script is not on the path."""

import sys

from mercer.cli import main

sys.exit(main())
