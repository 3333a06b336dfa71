"""The pages of the site, as text by address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from vcr_core.__about__ import __version__
from vcr_core.errors import ComponentUnavailable
from vcr_core.health_text import explain_flag
from vcr_core.leaderboard.boards import anchor_of, make_table
from vcr_core.leaderboard.component_pages import FOLDERS, ComponentPage, Components, is_web_address
from vcr_core.reporters.cells import MISSING
from vcr_core.reporters.charts import curve_panels
from vcr_core.reporters.details import run_details
from vcr_core.reporters.environments import environments
from vcr_core.reporters.matrix import matrices
from vcr_core.reporters.rows import Row, paired_rows

if TYPE_CHECKING:
    from jinja2 import Environment

    from vcr_core.leaderboard.rankings import Ranking
    from vcr_core.leaderboard.site_schema import Entry
    from vcr_core.leaderboard.submissions import LeftOut, Submission
    from vcr_core.summary import RunView

ASSETS: Mapping[str, tuple[str, ...]] = {
    "assets/style.css": ("report/style.css", "leaderboard/site.css"),
    "assets/script.js": ("report/script.js", "leaderboard/site.js"),
}
"""Files of the site by address, and the templates that they are made of."""

_CHECK_TITLES: Mapping[str, str] = {
    "files": "Files", "manifest": "Manifest", "configuration": "Configuration",
    "identity": "Identity",
    "records-schema": "Record schema", "coverage": "One record a video",
    "consistency": "Records agree with themselves", "threat": "Perturbation within the threat",
    "summary": "Numbers and intervals", "clips": "Kept clips", "versions": "Component versions",
    "rerun": "Videos evaluated again",
}  # fmt: skip


class Pages:
    """Renders the pages of one site.

    Args:
        submissions: admitted runs.
        rankings: all of them in rankings.
        entries: their data by run id.
        left_out: what is not on the leaderboard.
        built: when, if the pages are to say so.

    Raises:
        ComponentUnavailable: if jinja2 is not installed.
    """

    def __init__(
        self,
        submissions: Sequence[Submission],
        rankings: Sequence[Ranking],
        entries: Mapping[str, Entry],
        left_out: Sequence[LeftOut],
        *,
        title: str,
        built: str | None = None,
    ) -> None:
        self._environment = _environment()
        self._submissions = {one.run.name: one for one in submissions}
        self._rankings = rankings
        self._entries = entries
        self._left_out = left_out
        self._title = title
        self._components = Components({n: s.run.manifest for n, s in self._submissions.items()})
        self._ordered = paired_rows([one.run for one in submissions])
        self._ranking_of = {
            place.submission.run.name: ranking for ranking in rankings for place in ranking.places
        }
        self._shared = {
            "site": title,
            "version": __version__,
            "built": built,
            "missing": MISSING,
            "left_out": len(left_out),
            "folders": FOLDERS,
        }

    def all(self) -> Iterator[tuple[str, str]]:
        """Yield address and text of every page."""
        yield "index.html", self._index()
        yield "left-out.html", self._render("left_out.html", "", runs=self._left_out)
        for page in self._components.pages():
            yield page.page, self._component(page)
        for row, run in self._ordered:
            yield self._entries[run.name].page, self._entry(row, run)

    def _index(self) -> str:
        table = make_table(self._rankings, self._entries, self._components)
        listed = {
            kind: [page for page in self._components.pages() if page.kind == kind]
            for kind in FOLDERS
        }
        return self._render(
            "index.html", "", table=table, listed=listed, flags=self._flags(self._entries)
        )

    def _component(self, page: ComponentPage) -> str:
        table = make_table(self._rankings, self._entries, self._components, page.runs)
        # Of a system that was attacked more than once, what counts is drawn.
        ordered = [
            (row, run)
            for row, run in self._ordered
            if run.name in page.runs and self._entries[run.name].place.rank is not None
        ]
        curves = []
        grids = []
        if page.kind in ("model", "attack"):
            for setting, members in self._by_setting(ordered):
                series, panels = curve_panels([row for row, _ in members])
                if panels:
                    curves.append((setting, series, panels))
                if page.kind == "model":
                    found = matrices(members)
                    grids += [(setting, grid) for grid in found]
        chosen = {name: self._entries[name] for name in page.runs}
        return self._render(
            "component.html",
            "../",
            page=page,
            facts=[(k, v, is_web_address(v)) for k, v in page.facts],
            table=table,
            curves=curves,
            grids=grids,
            anchors={name: anchor_of(entry) for name, entry in chosen.items()},
            flags=self._flags(chosen),
        )

    def _entry(self, row: Row, run: RunView) -> str:
        entry = self._entries[run.name]
        ranking = self._ranking_of[run.name]
        submission = self._submissions[run.name]
        pages = {
            kind: self._components.of(run.manifest, kind)
            for kind in ("model", "defense", "attack", "dataset")
        }
        place = next(p for p in ranking.places if p.submission.run.name == run.name)
        return self._render(
            "entry.html",
            "../",
            entry=entry,
            ranking=ranking,
            place=place,
            instead=self._entries.get(place.superseded_by),
            pages=pages,
            run=run_details(run, row),
            row=row,
            environments=environments([(row, run)]),
            verification=submission.verification,
            check_titles=_CHECK_TITLES,
        )

    def _by_setting(
        self, ordered: Sequence[tuple[Row, RunView]]
    ) -> list[tuple[str, list[tuple[Row, RunView]]]]:
        """Return runs by videos and evaluation version: nothing is drawn across those."""
        groups: dict[str, list[tuple[Row, RunView]]] = {}
        for row, run in ordered:
            groups.setdefault(self._ranking_of[run.name].setting, []).append((row, run))
        return sorted(groups.items())

    def _flags(self, entries: Mapping[str, Entry]) -> list[tuple[str, str]]:
        raised = sorted({flag for entry in entries.values() for flag in entry.flags})
        return [(flag, explain_flag(flag)) for flag in raised]

    def _render(self, template: str, root: str, **context: Any) -> str:
        page = self._environment.get_template(f"leaderboard/{template}")
        return page.render(root=root, **self._shared, **context)


def asset(address: str) -> str:
    """Return the text of one file of :data:`ASSETS`."""
    return "\n".join(_resource(name) for name in ASSETS[address])


def _environment() -> Environment:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise ComponentUnavailable(
            f"the leaderboard needs {error.name}: pip install 'vcr-core[report]'"
        ) from error
    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_resource),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _resource(name: str) -> str:
    folder = name if "/" in name else f"report/{name}"
    return files("vcr_core").joinpath("templates", *folder.split("/")).read_text(encoding="utf-8")
