"""Pages as people see them: opened in headless Chromium from files, without any network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"wide": (1360, 900), "phone": (390, 844), "paper": (1032, 700)}
"""Paper is A4, lying, less its margins."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(120))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A running browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip(f"no browser on PATH: {', '.join(CHROMIUM)}")
    with api.sync_playwright() as playwright:
        # A container has no user namespaces, so the sandbox cannot start there.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page that was opened, with everything it said and asked for.

    Attributes:
        page: Playwright's page.
        said: errors and warnings of the console, and uncaught exceptions.
        asked: addresses that the page requested, its own and data left out.
    """

    def __init__(self, page: Any, path: Path) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        own = path.resolve().as_uri()
        page.on("console", lambda m: m.type in ("error", "warning") and self.said.append(m.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self._note(request.url, own))
        page.set_default_timeout(15_000)
        page.goto(own)

    def _note(self, url: str, own: str) -> None:
        if url.partition("#")[0] != own and not url.startswith(("data:", "blob:")):
            self.asked.append(url[:120])

    def texts(self, selector: str) -> list[str]:
        """Return what matching elements that can be seen say."""
        found = self.page.locator(selector)
        return [one.inner_text().strip() for one in found.all() if one.is_visible()]

    def serious(self) -> list[str]:
        """Return what axe-core finds serious or critical."""
        axe = pytest.importorskip(
            "axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing"
        )
        options = {"resultTypes": ["violations"]}
        found = axe.Axe().run(self.page, options=options).response["violations"]
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Tab]]:
    """Open a file: ``open_page(path, size="phone", scheme="dark")``."""
    contexts = []

    def open_(path: Path, *, size: str = "wide", scheme: str = "light", **more: Any) -> Tab:
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **more
        )
        contexts.append(context)
        return Tab(context.new_page(), path)

    yield open_
    for context in contexts:
        context.close()
