"""The page of mercer studio in headless Chromium: one server, a browser for each file, a fresh page for each test."""

import shutil

import pytest
from tests.studio.browser.studio_page import Studio, fragment, serve

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def studio_address():
    """The address of a running `mercer studio`."""
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    with serve() as address:
        yield address


@pytest.fixture(scope="module")
def chromium(studio_address):
    """A headless browser. It is closed after each file: no other event loop can run beside that of playwright."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_studio(studio_address, chromium):
    """A function that opens a page: of a state or a fragment, at a size, in a theme. No page may log an error."""
    opened = []

    def open_page(state=None, *, after="", width=1280, height=800, dark=False, wait=True, **context):
        scheme = "dark" if dark else "light"
        fresh = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **context)
        page = fresh.new_page()
        errors = []
        page.on(
            "console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(studio_address + (fragment(state) if state is not None else after))
        studio = Studio(page, errors)
        opened.append((fresh, studio))
        return studio.settle() if wait else studio

    yield open_page
    for fresh, studio in opened:
        fresh.close()
        assert studio.errors == []
