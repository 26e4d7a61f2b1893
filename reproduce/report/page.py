"""From records to the page: `report.html`, which needs nothing beside it, `report.md` and a CSV."""

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from reproduce import tables
from reproduce.claims import judge
from reproduce.claims.bounds import STATED
from reproduce.claims.cases import COLUMNS, NAMES
from reproduce.claims.claim import Contrast, Finding
from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import END, MissingError, final
from reproduce.claims.parts import ALPHA, Part
from reproduce.claims.tables import ROUNDING
from reproduce.experiments import base, exact, reading_distances, readings, table2
from reproduce.protocols import TABLE1, Case
from reproduce.records import Archive, Record
from reproduce.report import view
from reproduce.summary import TITLES, by_case, environment, spread, summarise

NAME = "report"

BEYOND = (exact.FIGURE.NAME, "map")
"""The figures of what lies beyond the paper; the map is drawn by `make map`."""


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
    records, times = (
        {name: store.scan(kind) for name, store in stores.items()}
        for kind in (base.RECORDS, table2.NAME)
    )
    read = _first(records, lambda found: any(readings.run(found).values()))
    trained = _first(records, lambda found: bool(base.recorded(found, TABLE1)))
    accurate = _first(records, lambda found: exact.is_run(found, exact.FIGURE.PROTOCOL))
    timed = _first(times, lambda found: table2.has_records(found, table2.PROTOCOL))
    is_run = readings.run(records[read])
    unrun = [setting for setting, recorded in is_run.items() if not recorded]
    shown = view.topics(findings, is_run.keys() - set(unrun))
    anew = reading_distances.drawn_anew(records[read])
    told = readings.told(records[read], readings.PROTOCOL, anew=anew)
    said = [*view.conclusion(shown), *filter(None, [told.conclusion])]
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
        "costs": _costs(times[timed], records[trained]),
        "timed_from": timed,
        "accurate": _accurate(stores[accurate]),
        "accurate_header": ["row", *map(str, COLUMNS), "end, less its algorithm's"],
        "accurate_from": accurate,
        "elsewhere": _elsewhere(records[trained]),
        "table1_from": trained,
        "machines": sorted({environment(one) for found in records.values() for one in found}),
        "seeds": sorted({one.run.seed for found in records.values() for one in found}),
        "pictures": _pictures(shown, figures),
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


def _pictures(shown: Sequence[view.TopicView], figures: Path) -> dict[str, str]:
    """The figures there are, by name, as text that a page can hold."""
    names = [*(name for one in shown for name in one.topic.figures), *BEYOND]
    paths = {name: figures / f"{name}.png" for name in names}
    return {
        name: base64.b64encode(path.read_bytes()).decode()
        for name, path in paths.items()
        if path.exists()
    }


def _first(found: Mapping[str, list[Record]], has: Callable[[list[Record]], bool]) -> str:
    """Returns the name of the first store that has something, of the last if none has."""
    return next((name for name, records in found.items() if has(records)), list(found)[-1])


def _costs(timed: Sequence[Record], records: Sequence[Record]) -> list[list[str]]:
    """What a row of Table 1 costs: accuracy against seconds, per weight update and of all."""
    updates = TABLE1.training.updates
    ends = {row.name: row.at(updates) for row in summarise(records, TABLE1, None)}
    return [
        [
            f"{TITLES[row.method]}, {'-' if row.method == 'sgd' else row.kernels}",
            f"{mean(ends[row.method]):.3f}",
            f"{row.seconds:.4f}",
            f"{updates * row.seconds:.1f}",
        ]
        for row in table2.rows(timed, table2.PROTOCOL)
        if row.seconds is not None and ends.get(row.method)
    ]


def _accurate(store: Archive) -> list[list[str]]:
    """Table 1's rows and their algorithms with accurate means, by the fresh seeds."""
    evidence, lines = Evidence.read(store), []
    algorithms = {name: Case(TABLE1.training, method) for name, method in exact.ACCURATE.items()}
    try:
        for name, case in (TABLE1.cases() | algorithms).items():
            curves = evidence.curves(case).values()
            means = [_mean([curve[update] for curve in curves]) for update in COLUMNS]
            lines.append([NAMES.get(name, name), *means, "-"])
            if name in exact.ALGORITHM:
                own = algorithms[exact.ALGORITHM[name]]
                apart = Contrast("", final, case, own).on(evidence)
                lines[-1][-1] = view.part_view(apart, 1).effect
    except MissingError:
        return []
    return lines


def _elsewhere(records: Sequence[Record]) -> list[list[str]]:
    """Each row's end on all test images, and on 1,000 drawn anew (R10), where that was recorded."""
    runs_of, lines = by_case(records), []
    for row, case in TABLE1.cases().items():
        found = [
            held_out
            for record in runs_of(case).values()
            if record.result["diverged_at"] is None
            if (held_out := record.timings.get("held_out"))
        ]
        kinds = ("all", "per_evaluation")
        ends = (_mean([one[kind][-1] for one in found]) for kind in kinds)
        lines.append([NAMES[row], str(len(found)), *ends])
    return lines


def _mean(values: Sequence[float]) -> str:
    if not values:
        return "not run"
    deviation = spread(values)
    return f"{mean(values):.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


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
