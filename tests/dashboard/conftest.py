"""A headless Chromium for the tests of the page, which are slow ones; they skip where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

_PATIENCE = 15_000  # milliseconds; the page looks at a run that has ended every five seconds


class Visitor:
    """Opens pages, each as a browser that has never been there, and notes what they complain of and ask for."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []
        self.asked: set[str] = set()

    def open(self, url: str, *, width: int = 1280, scheme: Literal["light", "dark"] = "light") -> Page:
        """The page, with the plan drawn."""
        context = self._browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(_PATIENCE)
        page.on("console", lambda message: self._complain(message.text))
        page.on("pageerror", lambda error: self._complain(str(error)))
        page.on("request", lambda request: self.asked.add(request.url))
        page.goto(url)
        page.locator("#graph .node").first.wait_for()
        return page

    def close(self) -> None:
        """Close all pages."""
        for context in self._contexts:
            context.close()

    def _complain(self, text: str) -> None:
        if "ERR_CONNECTION_REFUSED" not in text:  # the browser's own, of a server that has gone
            self.complaints.append(text)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium; Playwright's own is not downloaded."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("there is no Chromium; install it, on Debian as the package chromium")
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        # Its sandbox does not work for root. It opens nothing but this project's page.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """Whoever opens pages; fails if one of them complains, or asks for anything from elsewhere."""
    visitor = Visitor(browser)
    yield visitor
    visitor.close()
    assert not visitor.complaints
    assert {url.split("/")[2].partition(":")[0] for url in visitor.asked} <= {"127.0.0.1"}
