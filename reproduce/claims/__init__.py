"""What holds of the paper's claims, one by one, from records; trains nothing."""

from reproduce.claims.report import render

__all__ = ["render"]
