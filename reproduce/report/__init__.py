"""The verdict on one page, as HTML and as Markdown, from records; trains nothing."""

from reproduce.report.page import render

__all__ = ["render"]
