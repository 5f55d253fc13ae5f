"""The page in a browser, with real clicks: it shows the run, follows it, and fits the screen."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pipeflow.dashboard.recording import FILE
from pipeflow.dashboard.server import PageServer
from pipeflow.dashboard.views import Ending, Event, RunView
from tests.cli.small import COMMAND, ENVIRONMENT, FLAGS
from tests.dashboard.conftest import Visitor
from tests.dashboard.plans import graph, recorded, small_plan, snapshot, view

pytestmark = pytest.mark.slow

UPDATE = 3  # the small plan's stage in the learner, which `snapshot` says is the bottleneck


class Shown:
    """A server, and what it shows."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self.server = PageServer(lambda: self.view)
        self.url = self.server.url


@pytest.fixture
def shown() -> Iterator[Shown]:
    shown = Shown(
        view(
            snapshot(1, 10, policy_loss=0.5, recent_return=20.0),
            snapshot(2, 20, policy_loss=0.25, recent_return=30.0),
            events=(Event(1.5, 1001.5, "restart 1 of 3 of Worker: <b>it died</b>"),),
        )
    )
    yield shown
    shown.server.close()


def nodes(page: Page) -> list[str]:
    return page.locator("#graph .node .name").all_inner_texts()


def test_the_plan_is_drawn_with_its_types_and_its_figures(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url)
    assert nodes(page) == [
        "produce(Worker.sample)",
        "gather_async(1)",
        "doubled",
        "stage(Learner.update)",
        "sync_weights(Learner, Worker)",
    ]
    assert page.locator("#graph .node .place").all_inner_texts() == [
        "Worker × 2", "driver", "Learner", "Learner", "driver",
    ]  # fmt: skip
    assert page.locator("#graph path.items").count() == 4
    assert page.locator("#graph path.weights").count() == 1
    assert page.locator("#graph text").all_text_contents() == [
        "int", "int", "int", "dict[str, float]", "weights",
    ]  # fmt: skip
    first = page.locator("#graph .node").first
    expect(first.locator(".figures")).to_have_text("1/s · busy 25 %queue 1 · wait 50 %")
    expect(page.locator("#state")).to_have_text(re.compile("^nothing new for|^running"))
    expect(page.locator("h1")).to_have_text("small")


def test_no_two_stages_overlap_and_none_lies_outside_of_the_plan(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url)
    boxes = [box for one in page.locator("#graph .node").all() if (box := one.bounding_box()) is not None]
    whole = page.locator("#graph").bounding_box()
    assert whole is not None
    assert len(boxes) == 5
    for above, below in pairwise(boxes):
        assert above["y"] + above["height"] < below["y"]
    assert all(whole["x"] < box["x"] and box["y"] > whole["y"] for box in boxes)


def test_the_bottleneck_is_marked_and_says_what_to_try(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url)
    marked = page.locator("#graph .node.bottleneck")
    expect(marked).to_have_count(1)
    expect(marked.locator(".name")).to_have_text("stage(Learner.update)")
    expect(marked.locator(".mark")).to_be_visible()
    expect(page.locator("#bottleneck")).to_have_text(
        "Bottleneck: Learner.stage(Learner.update), busy 75 % of the time. Less to do."
    )


def test_a_click_on_a_stage_shows_its_figures(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url)
    expect(page.locator("#details-hint")).to_be_visible()
    page.locator("#graph .node").nth(UPDATE).click()
    expect(page.locator("#details-hint")).to_be_hidden()
    told = page.locator("#details-list div").all_inner_texts()
    figures = dict(line.split("\n", 1) for line in told)
    assert figures.pop("written at").partition(":")[0].endswith("tests/dashboard/plans.py")
    assert figures == {
        "stage": "Learner.stage(Learner.update)",
        "runs in": "Learner",
        "makes": "Stream[dict[str, float]]",
        "items in": "0",
        "items out": "2",
        "items/s": "1",
        "busy": "25 %",
        "waiting": "50 %",
        "waiting seconds": "1",
        "queue": "1",
        "policy lag": "0, at most 0",
    }
    assert page.locator("#graph .node[aria-pressed=true] .name").all_inner_texts() == [
        "stage(Learner.update)"
    ]
    expect(page.locator("#details-chart canvas")).to_be_visible()


def test_the_keyboard_reaches_every_stage_and_picks_it(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url)
    page.locator("#theme").focus()
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#graph .node").nth(1)).to_be_focused()
    expect(page.locator("#details-list")).to_contain_text("gather_async(1)")


def test_another_curve_can_be_picked_against_steps_or_seconds(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url)
    first, second = page.locator("#chart-0"), page.locator("#chart-1")
    expect(first).to_have_attribute("aria-label", "recent return against steps: 2 points, 30 at the end")
    expect(second).to_have_attribute("aria-label", "policy loss against steps: 2 points, 0.25 at the end")
    before = first.screenshot()
    page.locator("#curve-0").select_option("policy_loss")
    expect(first).to_have_attribute("aria-label", "policy loss against steps: 2 points, 0.25 at the end")
    assert first.screenshot() != before
    page.locator("#axis").select_option("seconds")
    expect(first).to_have_attribute("aria-label", "policy loss against seconds: 2 points, 0.25 at the end")


def test_failures_are_text_and_not_markup(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url)
    expect(page.locator("#log li")).to_have_count(1)
    expect(page.locator("#log")).to_contain_text("restart 1 of 3 of Worker: <b>it died</b>")


def test_the_theme_follows_the_system_until_it_is_chosen(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url, scheme="dark")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(18, 21, 27)")
    page.locator("#theme").click()
    expect(root).to_have_attribute("data-theme", "light")
    expect(page.locator("body")).to_have_css("background-color", "rgb(244, 245, 247)")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")


@pytest.mark.parametrize("width", [320, 390, 699])
def test_a_phone_shows_one_column_and_nothing_beside_it(width: int, shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url, width=width)
    page.locator("#graph .node").first.click()
    expect(page.locator("#details")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    places = [page.locator(f"#{name}").bounding_box() for name in ("plan", "details", "curves", "failures")]
    tops = [place["y"] for place in places if place is not None]
    assert len(tops) == 4
    assert tops == sorted(tops)
    assert len({place["x"] for place in places if place is not None}) == 1


def test_the_page_follows_the_run_and_keeps_the_last_figures_when_it_is_gone(
    shown: Shown, visitor: Visitor
) -> None:
    page = visitor.open(shown.url)
    page.locator("#graph .node").nth(UPDATE).click()
    new = snapshot(3, 30, policy_loss=0.125, recent_return=40.0)
    shown.view = replace(shown.view, snapshots=(*shown.view.snapshots, new), latest=new)
    expect(page.locator("#chart-0")).to_have_attribute(
        "aria-label", "recent return against steps: 3 points, 40 at the end"
    )
    expect(page.locator("#details-list")).to_contain_text("items out\n3", use_inner_text=True)
    shown.view = replace(shown.view, ending=Ending("failed", 1003.0, "StageError: no"))
    expect(page.locator("#state")).to_have_text(re.compile(r"^failed at \d\d:\d\d:\d\d$"))
    expect(page.locator("#log li").last).to_contain_text("StageError: no")
    shown.server.close()
    expect(page.locator("#state")).to_have_text(
        re.compile(r"^failed, server closed; figures of \d\d:\d\d:\d\d$")
    )
    expect(page.locator("#details-list")).to_contain_text("items out\n3", use_inner_text=True)


def test_a_page_that_is_left_open_shows_the_next_run_on_its_port(shown: Shown, visitor: Visitor) -> None:
    page = visitor.open(shown.url)
    new = snapshot(1, 10, loss=0.5)
    shown.view = replace(view(new), title="next", started=5000.0)
    expect(page.locator("h1")).to_have_text("next")
    expect(page.locator("#chart-0")).to_have_attribute(
        "aria-label", "loss against steps: 1 points, 0.5 at the end"
    )


def test_a_run_that_has_no_snapshot_yet_is_starting(visitor: Visitor) -> None:
    shown = Shown(view())
    page = visitor.open(shown.url)
    expect(page.locator("#state")).to_have_text("starting")
    assert len(nodes(page)) == len(graph().nodes)
    shown.server.close()


def test_a_program_shows_its_run(visitor: Visitor) -> None:
    with small_plan().run() as run:
        url = run.serve(title="own")
        next(run)
        page = visitor.open(url)
        expect(page.locator("h1")).to_have_text("own")
        expect(page.locator("#curve-0")).to_have_value("loss")


def started(*words: str, folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A command, and the address that it prints."""
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, text=True, cwd=folder, env=ENVIRONMENT
    )
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://\S+", line):
            return process, found[0]
    pytest.fail(f"{words} printed no address")


def ended(process: subprocess.Popen[str]) -> int:
    """Its exit code after Ctrl-C."""
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    return process.returncode


def test_a_finished_run_opens_the_same_way_from_its_folder(tmp_path: Path, visitor: Visitor) -> None:
    recorded(tmp_path / FILE, items=3)
    process, url = started("show", str(tmp_path), folder=tmp_path)
    page = visitor.open(url)
    expect(page.locator("#state")).to_have_text(re.compile("^finished at"))
    assert len(nodes(page)) == 5
    page.locator("#graph .node").nth(UPDATE).click()
    expect(page.locator("#details-list")).to_contain_text("items out\n3", use_inner_text=True)
    assert ended(process) == 0


def test_a_training_is_shown_while_it_goes_on_and_after_it_was_stopped(
    tmp_path: Path, visitor: Visitor
) -> None:
    words = ("train", "ppo", *FLAGS, "--steps", "100000000", "--logdir", "run", "--dashboard", "--quiet")
    process, url = started(*words, folder=tmp_path)
    page = visitor.open(url)
    expect(page.locator("#state")).to_have_text("running")
    expect(page.locator("#chart-1")).to_have_attribute("aria-label", re.compile("^policy loss against steps"))
    assert ended(process) == 128 + signal.SIGINT
    expect(page.locator("#state")).to_have_text(re.compile("^interrupted"))
    process, url = started("show", "run", folder=tmp_path)
    kept = visitor.open(url)
    expect(kept.locator("#state")).to_have_text(re.compile("^interrupted at"))
    assert nodes(kept) == nodes(page)
    assert ended(process) == 0
