"""Tables of the user on the page: columns, kernel components and strings as the plane, a fit as mercer fit."""

import numpy as np
import pytest
from tests.studio.browser.studio_page import PATIENCE, Studio, serve

from mercer.studio.table_files import SUFFIXES

ROWS = np.random.default_rng(0).normal(size=(40, 3)).round(3)
TABLE = "width,height,weight,kind\n" + "".join(
    f"{a + 2 * (k % 2)},{b},{c},{'oak' if k % 2 else 'elm'}\n" for k, (a, b, c) in enumerate(ROWS)
)
CURVE = "x,y\n" + "".join(f"{x:.3f},{np.sin(x):.4f}\n" for x in np.linspace(0, 6, 30))
STRINGS = "text,kind\n" + "".join(
    f"{''.join(np.random.default_rng(k).choice(list('AT' if k % 2 else 'GC'), 12))},{'at' if k % 2 else 'gc'}\n"
    for k in range(20)
)


def table(open_studio, text, name="trees.csv"):
    """The page with a table open."""
    studio = open_studio()
    studio.page.get_by_role("tab", name="My data").click()
    file = {"name": name, "mimeType": "text/csv", "buffer": text.encode() if isinstance(text, str) else text}
    studio.page.locator("mercer-data input[type=file]").set_input_files(file)
    return studio


def to_plane(studio, count):
    """Show the table on the plane and wait for its points."""
    button = studio.page.get_by_role("button", name="show on the plane")
    button.wait_for(timeout=1000 * PATIENCE)
    button.click()
    # the page begins with points of its own, perhaps as many as the table has
    studio.page.get_by_text(f"{count} rows are on the plane.").wait_for(timeout=1000 * PATIENCE)
    assert len(studio.state["points"]) == count
    return studio.settle()


def test_two_columns_are_the_plane(open_studio):
    """Two columns of a CSV file become standardised points with their classes and the names of their axes."""
    studio = to_plane(table(open_studio, TABLE), 40)
    page = studio.page
    points = np.array(studio.state["points"])
    width = ROWS[:, 0] + 2 * (np.arange(40) % 2)
    np.testing.assert_allclose(points[:, 0], (width - width.mean()) / width.std(), atol=1e-3)
    assert points[:, 2].tolist() == (np.arange(40) % 2).tolist()
    assert page.locator("mercer-data .mp-classes li").all_inner_texts() == ["elm", "oak"]
    page.get_by_text("40 rows are on the plane.").wait_for()
    assert "width" in page.evaluate("mercerStudio.plane._axes.x")


def test_the_page_begins_with_the_table_of_the_command_line(chromium, tmp_path):
    """`mercer studio TABLE` opens with two columns on the plane; after a reload the page has the state that it had."""
    (tmp_path / "trees.csv").write_text(TABLE, encoding="utf-8")
    with serve(str(tmp_path / "trees.csv")) as address:
        page = chromium.new_context().new_page()
        page.goto(address)
        page.get_by_text("40 rows are on the plane.").wait_for(timeout=1000 * PATIENCE)
        studio = Studio(page, []).settle()
        assert len(studio.state["points"]) == 40
        assert page.get_by_role("tab", selected=True).inner_text() == "My data"
        assert "width" in page.evaluate("mercerStudio.plane._axes.x")
        studio.update(points=[[-1, 0, 0], [1, 0, 1]])
        page.reload()
        assert len(studio.settle().state["points"]) == 2
        page.context.close()


@pytest.mark.parametrize("where", ["mercer-data", "mercer-plane .surface"])
def test_a_dropped_file_is_opened(open_studio, where):
    """A CSV file dropped on the panel or on the plane opens in the panel; the browser stays on the page."""
    studio = open_studio()
    if where == "mercer-data":
        studio.page.get_by_role("tab", name="My data").click()
    address = studio.page.url.split("#")[0]
    studio.drop(where, "trees.csv", TABLE)
    studio.page.get_by_text("trees.csv: 40 rows, 4 columns.").wait_for(timeout=1000 * PATIENCE)
    assert not studio.page.locator("mercer-data .mp-over").count()
    assert len(to_plane(studio, 40).state["points"]) == 40
    assert studio.page.url.split("#")[0] == address


def test_a_dropped_state_is_opened(open_studio):
    """A state file dropped on the page is shown; a JSON file that is no state gets a message and changes nothing."""
    studio = open_studio()
    studio.drop("mercer-plane .surface", "two.json", '{"points": [[-1, 0, 0], [1, 0, 1]], "kernel": "linear()"}')
    studio.wait("mercerStudio.store.state.points.length === 2")
    studio.drop("mercer-controls", "other.json", '{"points": "many"}')
    studio.page.locator(".message.error").wait_for()
    assert len(studio.settle().state["points"]) == 2


def test_the_panel_offers_the_files_that_are_read(open_studio):
    """The dialog for a table shows files of each kind that is read, and no others."""
    accepted = open_studio().page.locator("mercer-data input[type=file]").get_attribute("accept")
    assert accepted.split(",") == list(SUFFIXES)


def test_kernel_components_are_the_plane(open_studio):
    """Two kernel principal components have mean 0 and standard deviation 1."""
    studio = table(open_studio, TABLE)
    kinds = studio.page.locator("mercer-data").get_by_label("Plane", exact=True)
    kinds.select_option("components", timeout=1000 * PATIENCE)
    points = np.array(to_plane(studio, 40).state["points"])
    np.testing.assert_allclose(points[:, :2].mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(points[:, :2].std(axis=0), 1, atol=1e-3)


def test_a_target_of_numbers_is_regression(open_studio):
    """A table whose target has many values opens as regression over one column."""
    studio = to_plane(table(open_studio, CURVE, "curve.csv"), 30)
    assert studio.state["mode"] == "regress"
    assert {point[2] for point in studio.state["points"]} == {0}


def test_strings_as_a_kernel_map(open_studio):
    """Strings of two alphabets lie apart on their kernel map: a line separates them."""
    studio = to_plane(table(open_studio, STRINGS, "strings.csv"), 20)
    studio.update(kernel="linear()", C="inf")
    assert studio.result["status"] in ("optimal", "separable")


@pytest.mark.parametrize(
    ("text", "name"), [(b"\x00\x01\x02", "noise.parquet"), ("", "empty.csv"), ("a\n", "short.csv")]
)
def test_files_that_are_no_tables_are_refused(open_studio, text, name):
    """A file that cannot be read gets a message, and the plane stays as it is."""
    studio = open_studio()
    before = studio.state
    studio.page.get_by_role("tab", name="My data").click()
    file = {"name": name, "mimeType": "text/csv", "buffer": text if isinstance(text, bytes) else text.encode()}
    studio.page.locator("mercer-data input[type=file]").set_input_files(file)
    error = studio.page.locator("mercer-data .mp-error")
    error.wait_for(timeout=1000 * PATIENCE)
    assert name in error.inner_text()
    assert studio.state == before
    studio.errors.clear()  # the browser logs the answer 422


@pytest.mark.slow
def test_fit_as_mercer_fit(open_studio, tmp_path):
    """The whole table is fitted with progress; its report shows in a frame that runs nothing; the model file loads."""
    import mercer

    studio = table(open_studio, TABLE)
    page = studio.page
    start = page.get_by_role("button", name="fit as mercer fit")
    start.wait_for(timeout=1000 * PATIENCE)
    start.click()
    page.get_by_role("button", name="show the report").wait_for(timeout=1000 * PATIENCE)
    assert "classification of 'kind'" in page.locator("mercer-data pre").inner_text()
    page.get_by_role("button", name="show the report").click()
    frame = page.locator("mercer-data iframe")
    assert frame.get_attribute("sandbox") == ""
    page.frame_locator("mercer-data iframe").locator("h1").first.wait_for(timeout=1000 * PATIENCE)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="download the model").click()
    found = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(found)
    assert hasattr(mercer.load(found), "predict")
