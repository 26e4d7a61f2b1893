"""What a weight update costs here and by other libraries' samplers, measured side by side.

`problem`, `work` and `reference` say what is computed; `systems` holds the ways to compute it, one
file per library; `worker` runs one of them in a process of its own, at the word of `processes`;
`agreement` checks that all compute the same, `race` and `curves` time them; `results` keeps what
was measured and `report` shows it.
"""
