"""Figures from summaries of records; never trains, needs no display and no LaTeX."""
