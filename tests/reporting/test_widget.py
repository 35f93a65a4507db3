"""The page as a widget of a notebook: its traits in Python, its script in a browser without a kernel."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import uncertain_cep as uc
from tests.needs import lacking
from tests.reporting.pages import Shown
from tests.reporting.test_facts import EVENTS, QUERY
from uncertain_cep.errors import RuntimeEnvironmentError
from uncertain_cep.reporting.page import FRAME_HEIGHT, Report

MODEL = """
const state = {...STATE}, heard = {}, told = [];
const model = {
  get: (name) => state[name],
  set: (name, value) => {
    state[name] = value;
    told.push([name, value]);
    (heard[`change:${name}`] || []).forEach((one) => one());
  },
  save_changes: () => told.push("saved"),
  on: (name, one) => { (heard[name] = heard[name] || []).push(one); },
  off: (name, one) => { heard[name] = heard[name].filter((other) => other !== one); },
};
window.model = model; window.told = told; window.heard = heard;
window.close_widget = widget.render({ model, el: document.getElementById("output") });
"""
"""What a notebook without a kernel gives to the script of a widget."""


@pytest.fixture(scope="module")
def report() -> Report:
    return uc.report(EVENTS, QUERY, stamp="at")


@pytest.fixture
def notebook(tmp_path: Path, report: Report) -> Path:
    """A page that shows the widget as a notebook does, in dark colours."""
    state = {"html": report.html, "title": report.summary, "height": 500, "match": None}
    handed = json.dumps(state).replace("<", "\\u003c")
    module = files("uncertain_cep.reporting").joinpath("widget.js").read_text(encoding="utf-8")
    module = module.replace("export default", "const widget =")
    path = tmp_path / "notebook.html"
    path.write_text(
        '<!doctype html><html><body data-jp-theme-light="false"><div id="output"></div>'
        f'<script type="module">{module}\nconst STATE = {handed};\n{MODEL}</script></body></html>',
        encoding="utf-8",
    )
    return path


def test_a_widget_has_the_page_and_readers_without_a_kernel_get_it_too(report: Report) -> None:
    if importlib.util.find_spec("anywidget") is None:
        lacking("packages", "no anywidget: install the extra notebook")
    widget = report.widget()
    state = widget.get_state()
    assert state["html"] == str(report)
    assert (state["title"], state["height"], state["match"]) == (report.summary, FRAME_HEIGHT, None)
    assert "uncertain-cep page" in state["_esm"]
    bundle = widget._repr_mimebundle_()
    assert bundle is not None
    kinds = bundle[0]
    assert kinds["text/html"] == report._repr_html_()
    assert kinds["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
    seen = []
    widget.observe(lambda change: seen.append(change["new"]), "match")
    widget.set_state({"match": {"host": "h1", "a": 1, "b": 2}})
    assert widget.match == {"host": "h1", "a": 1, "b": 2}
    widget.match = None
    assert seen == [{"host": "h1", "a": 1, "b": 2}, None]
    widget.close()


def test_without_anywidget_an_error_says_what_to_install(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(RuntimeEnvironmentError, match=r"uncertain-cep\[notebook\]"):
        report.widget()


def test_a_notebook_and_the_page_share_colours_and_the_open_match(shown: Shown, notebook: Path) -> None:
    page = shown.page
    page.goto(notebook.as_uri())
    inside = page.frame_locator("#output iframe")
    root = inside.locator("html[data-ready]")
    root.wait_for()
    assert page.locator("iframe").evaluate("one => one.getBoundingClientRect().height") == 500
    inside.locator("html[data-theme=dark]").wait_for()
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    inside.locator("html[data-theme=light]").wait_for()
    # A click tells Python, and a trait that Python sets opens another match.
    inside.locator("tr.row").first.click()
    page.wait_for_function("model.get('match') !== null")
    assert page.evaluate("model.get('match')") == {"host": EVENTS["host"][2].as_py(), "a": 3, "b": 4}
    assert page.evaluate("told.at(-1)") == "saved"
    page.evaluate("model.set('match', { host: 'h1', a: 1, b: 2 })")
    opened = inside.locator("tr.row.open")
    opened.filter(has_text="h1").wait_for()
    assert opened.count() == 1
    opened.click()
    page.wait_for_function("model.get('match') === null")
    page.evaluate("model.set('height', 300)")
    assert page.locator("iframe").evaluate("one => one.getBoundingClientRect().height") == 300
    # Without a view nothing is heard any more.
    page.evaluate("close_widget()")
    assert page.evaluate("Object.values(heard).flat().length") == 0
