"""Rankings as the pages show them: one table, one body a ranking, every address relative."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.leaderboard.component_pages import ComponentPage, Components
from vcr_core.leaderboard.site_schema import Entry, Number
from vcr_core.reporters.cells import Cell
from vcr_core.reporters.wording import metric_title

if TYPE_CHECKING:
    from vcr_core.leaderboard.rankings import Ranking

KNOWLEDGE_TEXT: Mapping[str, str] = {
    "": "",
    "asks nothing": "asks nothing of the model",
    "sees the whole system": "the attack sees the whole system",
    "sees the bare model": "the attack does not know the defense",
    "sees another model": "the attack was made on another model",
}
_SHOWN_METRICS = ("psnr", "ssim", "lpips", "vmaf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A text and the page that it leads to, relative to the site."""

    text: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """One run in a table.

    Attributes:
        entry: its data.
        rank: ranks that the tests leave open, ``2-4`` with a dash; ``""`` if another run counts.
        instead: page of the run that counts instead of it.
        model: its model.
        defenses: its defenses.
        clean: clean accuracy of the system.
        robust: robust accuracy of the system.
        success: success rate of the attack.
        queries: mean number of forward passes.
        metrics: in the order of the columns.
        errors: videos without a result.
        choices: what the filters look at, by name.
    """

    entry: Entry
    rank: str
    instead: str
    model: Link
    defenses: tuple[Link, ...]
    clean: Cell
    robust: Cell
    success: Cell
    queries: Cell
    metrics: tuple[Cell, ...]
    errors: int
    choices: Mapping[str, str]

    @property
    def anchor(self) -> str:
        """Id of the row on a page."""
        return anchor_of(self.entry)


def anchor_of(entry: Entry) -> str:
    """Return the id of a run's row; a run id may be anything, a page's name is safe."""
    return f"run-{entry.page.removeprefix('entries/').removesuffix('.html')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One ranking, or those of its runs that a page is about.

    Attributes:
        ranking: what the runs share.
        knowledge: what the attacker looks at, in words.
        attack: page of the attack, if there is one.
        dataset: page of the dataset.
        summary: how many systems, and how many pairs can be told apart.
        rows: best first.
    """

    ranking: Ranking
    knowledge: str
    attack: Link | None
    dataset: Link | None
    summary: str
    rows: tuple[BoardRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Boards with the columns that some row of them needs."""

    boards: tuple[Board, ...]
    metrics: tuple[str, ...]
    attacked: bool
    failing: bool
    flagged: bool

    @property
    def width(self) -> int:
        """Number of columns."""
        return 5 + 3 * self.attacked + len(self.metrics) + self.failing + self.flagged

    @property
    def runs(self) -> int:
        """Number of runs."""
        return sum(len(board.rows) for board in self.boards)

    def choices(self) -> list[tuple[str, str, list[str]]]:
        """Return name, title and values of the filters that have a choice to offer."""
        titles = {
            "dataset": "Videos", "attack": "Attack", "threat": "Threat", "access": "Access",
            "knowledge": "Attacker", "model": "Model", "defense": "Defense", "state": "Checks",
        }  # fmt: skip
        rows = [row for board in self.boards for row in board.rows]
        found = []
        for name, title in titles.items():
            values = dict.fromkeys(row.choices[name] for row in rows)
            if len(values) > 1:
                # Threats come in the order of the rankings, which is that of the radius.
                listed = list(values) if name in ("threat", "dataset") else sorted(values)
                found.append((name, title, listed))
        return found


def make_table(
    rankings: Sequence[Ranking],
    entries: Mapping[str, Entry],
    components: Components,
    runs: Collection[str] | None = None,
) -> Table:
    """Return the rankings, or those parts of them that are about ``runs``."""
    chosen = [
        (ranking, [p for p in ranking.places if runs is None or p.submission.run.name in runs])
        for ranking in rankings
    ]
    shown = [entries[p.submission.run.name] for _, places in chosen for p in places]
    names = {name for entry in shown for name in entry.metrics}
    metrics = tuple(name for name in _SHOWN_METRICS if name in names)
    boards = []
    for ranking, places in chosen:
        if not places:
            continue
        manifest = places[0].submission.run.manifest
        rows = []
        for place in places:
            run = place.submission.run
            entry = entries[run.name]
            rows.append(
                _row(
                    entry,
                    ranking,
                    rank=place.text,
                    instead=entries[place.superseded_by].page if place.superseded_by else "",
                    model=_links(components.of(run.manifest, "model"))[0],
                    defenses=_links(components.of(run.manifest, "defense")),
                    metrics=metrics,
                )
            )
        boards.append(
            Board(
                ranking=ranking,
                knowledge=KNOWLEDGE_TEXT[ranking.knowledge],
                attack=next(iter(_links(components.of(manifest, "attack"))), None),
                dataset=next(iter(_links(components.of(manifest, "dataset"))), None),
                summary=_summary(ranking),
                rows=tuple(rows),
            )
        )
    return Table(
        boards=tuple(boards),
        metrics=tuple(metric_title(name) for name in metrics),
        attacked=any(entry.attack for entry in shown),
        failing=any(entry.evaluated < entry.videos for entry in shown),
        flagged=any(entry.flags for entry in shown),
    )


def _row(
    entry: Entry,
    ranking: Ranking,
    *,
    rank: str,
    instead: str,
    model: Link,
    defenses: tuple[Link, ...],
    metrics: Sequence[str],
) -> BoardRow:
    no_attack = Cell(reason="no attack")
    absent = Number(value=None, reason="not measured")
    return BoardRow(
        entry=entry,
        rank=rank,
        instead=instead,
        model=model,
        defenses=defenses,
        clean=_cell(entry.clean_accuracy, share=True),
        robust=_cell(entry.robust_accuracy, share=True) if entry.robust_accuracy else no_attack,
        success=_cell(entry.attack_success, share=True) if entry.attack_success else no_attack,
        queries=Cell(value=entry.queries, reason="not measured" if entry.attack else "no attack"),
        metrics=tuple(_cell(entry.metrics.get(name, absent)) for name in metrics),
        errors=entry.videos - entry.evaluated,
        choices={
            "dataset": ranking.setting,
            "attack": entry.attack or "none",
            "threat": entry.threat or "none",
            "access": entry.access or "no attack",
            "knowledge": KNOWLEDGE_TEXT[entry.knowledge] or "no attack",
            "model": model.text,
            "defense": " → ".join(link.text for link in defenses) or "none",
            "state": entry.state,
        },
    )


def _summary(ranking: Ranking) -> str:
    systems = sum(place.rank is not None for place in ranking.places)
    if systems < 2:
        return "1 system"
    if not ranking.told_apart:
        return f"{systems} systems, none of which can be told apart"
    return f"{systems} systems; {ranking.told_apart} of {ranking.pairs} pairs can be told apart"


def _links(pages: Sequence[ComponentPage]) -> tuple[Link, ...]:
    return tuple(Link(text=page.ref, page=page.page) for page in pages)


def _cell(number: Number, *, share: bool = False) -> Cell:
    low, high = number.ci95 or (None, None)
    return Cell(
        value=number.value, low=low, high=high, n=number.n, k=number.k, method=number.method,
        reason=number.reason, share=share,
    )  # fmt: skip
