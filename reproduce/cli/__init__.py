"""The command line: `reproduce table1`, `reproduce figures` and the others."""

from reproduce.cli.entry import main

__all__ = ["main"]
