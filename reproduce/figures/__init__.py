"""Figures from summaries of records; never trains, needs no display and no LaTeX."""

import os

# Only files are drawn. What a notebook or a shell has set may not even be installed here, and
# matplotlib looks at it when it is imported.
os.environ["MPLBACKEND"] = "agg"
