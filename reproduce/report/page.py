"""From records to the page: `report.html`, which needs nothing beside it, `report.md` and a CSV."""

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from reproduce import tables
from reproduce.claims import judge
from reproduce.claims.bounds import STATED
from reproduce.claims.cases import COLUMNS
from reproduce.claims.claim import Finding
from reproduce.claims.measures import END
from reproduce.claims.parts import ALPHA, Part
from reproduce.claims.tables import ROUNDING
from reproduce.experiments import base, reading_distances, readings, table2
from reproduce.protocols import TABLE1
from reproduce.records import Archive
from reproduce.report import view
from reproduce.report.beside import first, sections
from reproduce.summary import environment

NAME = "report"


def render(
    stores: Mapping[str, Archive], output: Path, figures: Path
) -> tuple[str, list[str], list[Path]]:
    """Writes the page.

    Args:
        stores: The records, by the name of where they lie.
        output: Folder of the page.
        figures: Folder of the figures, those of them that are there are shown.

    Returns:
        The conclusion in plain words, the names of the stores that decided, and the files written.
    """
    findings = judge(stores)
    records = {name: store.scan(base.RECORDS) for name, store in stores.items()}
    read = first(records, lambda found: any(readings.run(found).values()))
    is_run = readings.run(records[read])
    unrun = [setting for setting, recorded in is_run.items() if not recorded]
    shown = view.topics(findings, is_run.keys() - set(unrun))
    anew = reading_distances.drawn_anew(records[read])
    told = readings.told(records[read], readings.PROTOCOL, anew=anew)
    said = [*view.conclusion(shown), *filter(None, [told.conclusion])]
    beside = sections(records, {name: one.scan(table2.NAME) for name, one in stores.items()})
    named = [name for one in shown for name in one.topic.figures]
    context = {
        "conclusion": said,
        "topics": shown,
        "verdicts": view.SHOWN,
        "bounds": STATED,
        "level": 1 - 2 * ALPHA,
        "prediction": 1 - 2 * ALPHA / len(COLUMNS),
        "columns": len(COLUMNS),
        "rounding": ROUNDING,
        "end": END,
        "measured": END // TABLE1.training.evaluate_every,
        "readings": told.sections,
        "readings_notes": readings.NOTES,
        "unrun": unrun,
        "readings_from": read,
        "beside": beside,
        "machines": sorted({environment(one) for found in records.values() for one in found}),
        "seeds": sorted({one.run.seed for found in records.values() for one in found}),
        "pictures": _pictures([*named, *(one.figure for one in beside)], figures),
        "folder": Path(os.path.relpath(figures, output)).as_posix(),
    }
    written = tables.write(_filled("report.md.j2", context), _frame(findings), output / NAME)
    page = output / f"{NAME}.html"
    tables.write_text(page, _filled("report.html.j2", context))
    used = [name for name in stores if any(finding.source == name for finding in findings)]
    return "\n\n".join(said) + "\n", used, [page, *written]


def _filled(template: str, context: Mapping[str, Any]) -> str:
    loaded = Environment(
        loader=PackageLoader("reproduce.report"),
        autoescape=template.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    loaded.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return loaded.get_template(template).render(context)


def _pictures(names: Sequence[str], figures: Path) -> dict[str, str]:
    """The figures there are, by name, as text that a page can hold."""
    paths = {name: figures / f"{name}.png" for name in names}
    return {
        name: base64.b64encode(path.read_bytes()).decode()
        for name, path in paths.items()
        if path.exists()
    }


def _frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """A line per claim and part, numbers unrounded."""
    return pd.DataFrame(
        {
            "topic": one.claim.topic,
            "claim": one.claim.key,
            "statement": one.claim.statement,
            "verdict": one.verdict,
            "final": one.is_final,
            "seeds": one.seeds,
            "fresh": one.is_fresh,
            "records": one.source,
            "paper": one.paper,
            "part": part.rule,
            "value": part.value if isinstance(part, Part) else None,
            "low": _ends(part, len(one.parts))[0],
            "high": _ends(part, len(one.parts))[1],
            "p_kept": part.kept(),
            "p_broken": part.broken(),
        }
        for one in findings
        for part in one.parts
    )


def _ends(part: object, among: int) -> tuple[float | None, float | None]:
    return part.interval(among) if isinstance(part, Part) else (None, None)
