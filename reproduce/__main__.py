"""`python -m reproduce`."""

import sys

from reproduce.cli import main

if __name__ == "__main__":
    sys.exit(main())
