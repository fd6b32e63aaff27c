"""``python -m raf_session.cli``: the command where its script is not on the path."""

import sys

from raf_session.cli import main

if __name__ == "__main__":
    sys.exit(main())
