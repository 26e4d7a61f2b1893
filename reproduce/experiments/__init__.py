"""One file per table or figure of the paper: cases, runs, rendering."""
