"""The sections of the HTML report between the table of results and the details of the runs.

A section is one entry of :data:`SECTIONS`: a function that looks at the runs, and at what the user
asked for, and returns a :class:`Section`, or ``None`` where there is nothing to show. Its partial
template lies in ``templates/report/`` and finds the section's context under the name ``section``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from vcr_core import definitions
from vcr_core.reporters.charts import bar_panels, curve_panels
from vcr_core.reporters.detection_table import TITLE as DETECTION
from vcr_core.reporters.detection_table import detection_report
from vcr_core.reporters.extras import certificate_scope
from vcr_core.reporters.gallery import MAX_CLIPS, make_gallery
from vcr_core.reporters.guarantees import certified_panels
from vcr_core.reporters.matrix import matrices
from vcr_core.reporters.models_table import MODELS_LEGEND, models_tables
from vcr_core.reporters.problems import error_kinds, raised_flags
from vcr_core.reporters.queries import query_panels
from vcr_core.reporters.robustness import robustness_report
from vcr_core.reporters.rows import Row, run_title
from vcr_core.reporters.script_data import json_for_script
from vcr_core.reporters.trade_offs import trade_offs
from vcr_core.reporters.transfer_matrix import TITLE as TRANSFER
from vcr_core.reporters.transfer_matrix import transfer_report
from vcr_core.reporters.video_data import drill_down

if TYPE_CHECKING:
    from vcr_core.summary import RunView

Ordered: TypeAlias = Sequence[tuple[Row, "RunView"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of the page.

    Attributes:
        anchor: its id on the page, ``[a-z-]+``.
        title: its heading.
        partial: file in ``templates/report/`` that shows it, below the heading.
        context: what the partial finds as ``section.…``.
        short: its name in the list of sections; the title where it is empty.
    """

    anchor: str
    title: str
    partial: str
    context: Mapping[str, Any] = field(default_factory=dict)
    short: str = ""

    @property
    def link(self) -> str:
        """The text of the link to the section."""
        return self.short or self.title


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may ask of the page.

    Attributes:
        reference: model that corruption errors are divided by, ``""`` for none.
        clips: how many kept clips to show at most.
    """

    reference: str = ""
    clips: int = MAX_CLIPS


def further_sections(ordered: Ordered, options: Options | None = None) -> list[Section]:
    """Return the sections that have something to show, in the order of the page."""
    found = (make(ordered, options or Options()) for make in SECTIONS)
    return [section for section in found if section is not None]


def _robustness(ordered: Ordered, options: Options) -> Section | None:
    found = robustness_report(ordered, options.reference)
    if found is None:
        return None
    return Section(
        anchor="robustness",
        title="Robustness side by side",
        short="Side by side",
        partial="robustness.html",
        context={"report": found},
    )


def _problems(ordered: Ordered, _: Options) -> Section | None:
    errors, flags = error_kinds(ordered), raised_flags(ordered)
    if not errors and not flags:
        return None
    return Section(
        anchor="problems",
        title="Errors and health flags",
        partial="problems.html",
        context={"errors": errors, "flags": flags},
    )


def _models(ordered: Ordered, _: Options) -> Section | None:
    tables = models_tables(ordered)
    if not tables:
        return None
    return Section(
        anchor="models",
        title="Models against attacks",
        partial="models.html",
        context={"tables": tables, "legend": MODELS_LEGEND},
    )


def _transfer(ordered: Ordered, _: Options) -> Section | None:
    found = transfer_report(ordered)
    if found is None:
        return None
    return Section(
        anchor="transfer",
        title=TRANSFER,
        short="Transfer",
        partial="robustness.html",
        context={"report": found},
    )


def _matrices(ordered: Ordered, _: Options) -> Section | None:
    found = matrices(ordered)
    if not found:
        return None
    return Section(
        anchor="matrix",
        title="Defenses against attacks",
        partial="matrices.html",
        context={"matrices": found},
    )


def _charts(
    anchor: str,
    title: str,
    short: str,
    series: Sequence[Any],
    panels: Sequence[Any],
    *,
    partial: str = "",
    **more: Any,
) -> Section | None:
    """Return a section of charts, ``None`` where there is none to draw."""
    if not panels:
        return None
    return Section(
        anchor=anchor,
        title=title,
        short=short,
        partial=partial or f"{anchor}.html",
        context={"series": series, "panels": panels, **more},
    )


def _curves(ordered: Ordered, _: Options) -> Section | None:
    series, panels = curve_panels([row for row, _ in ordered])
    return _charts(
        "curves", "Accuracy over the perturbation budget", "Accuracy over ε", series, panels
    )


def _queries(ordered: Ordered, _: Options) -> Section | None:
    series, panels = query_panels(_white_box(ordered))
    return _charts("queries", "Attack success over queries", "Success over queries", series, panels)


def _trade_offs(ordered: Ordered, _: Options) -> Section | None:
    series, panels = trade_offs(_white_box(ordered))
    return _charts(
        "cost", "Cost against robustness", "Cost", series, panels, partial="trade_offs.html"
    )


def _certified(ordered: Ordered, _: Options) -> Section | None:
    series, panels = certified_panels(ordered)
    note = certificate_scope([row.certificate for row, _ in ordered if row.certificate])
    title = "Certified accuracy over the L2 radius"
    return _charts("certified", title, "Certified accuracy", series, panels, note=note)


def _white_box(ordered: Ordered) -> Ordered:
    """Return runs without those whose queries and attack went to another model."""
    return [(row, run) for row, run in ordered if not row.source]


def _bars(ordered: Ordered, _: Options) -> Section | None:
    ordered = _white_box(ordered)
    holds = {
        row.run: definitions.holds(
            "defended_robust_accuracy" if row.defended else "robust_accuracy", run.records
        )
        for row, run in ordered
    }
    panels = bar_panels([row for row, _ in ordered], holds)
    if not panels:
        return None
    return Section(
        anchor="bars",
        title="Systems compared under the same attack",
        short="Systems compared",
        partial="bars.html",
        context={"panels": panels, "ties": any(b.letters for p in panels for b in p.bars)},
    )


def _detection(ordered: Ordered, _: Options) -> Section | None:
    found = detection_report(ordered)
    if found is None:
        return None
    # Its tables are shown by what shows those of robustness.
    return Section(
        anchor="detection",
        title=DETECTION,
        short="Tampering found",
        partial="robustness.html",
        context={"report": found},
    )


def _clips(ordered: Ordered, options: Options) -> Section | None:
    gallery = make_gallery([run for _, run in ordered], options.clips)
    if not gallery.exhibits:
        return None
    return Section(
        anchor="clips",
        title="What the attacks change",
        short="Clips",
        partial="clips.html",
        context={"exhibits": gallery.exhibits, "kept": gallery.kept},
    )


def _videos(ordered: Ordered, _: Options) -> Section | None:
    if not any(run.records for _, run in ordered):
        return None
    return Section(
        anchor="videos",
        title="Classes and videos",
        partial="videos.html",
        context={
            "titles": [run_title(row) for row, _ in ordered],
            "data": json_for_script(drill_down(ordered)),
        },
    )


SECTIONS: tuple[Callable[[Ordered, Options], Section | None], ...] = (
    _problems,
    _robustness,
    _models,
    _transfer,
    _matrices,
    _bars,
    _curves,
    _queries,
    _trade_offs,
    _certified,
    _detection,
    _clips,
    _videos,
)
"""What makes the sections, in the order of the page. One line here adds one."""
