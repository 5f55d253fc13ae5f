"""Make the pictures of docs/dashboard.md: train PPO and Ape-X, and photograph their pages in Chromium.

python scripts/picture_dashboard.py
"""

from __future__ import annotations

import io
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from pipeflow.cli import main as pipeflow
from pipeflow.dashboard import FILE, PageServer, read
from pipeflow.dashboard.views import RunView

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
COLOURS = 128  # of a picture: a third of its size, with no difference to see


def main() -> None:
    """Train, and write the three pictures."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        raise SystemExit("there is no Chromium; install it, on Debian as the package chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        ppo = trained("ppo", 200_000, Path(folder))
        apex = trained("apex", 40_000, Path(folder))
        # Its sandbox does not work for root. It opens nothing but this project's page.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        photograph(browser, "dashboard-ppo.png", ppo, "PPOLearner.stage(PPOLearner.update)")
        photograph(browser, "dashboard-apex.png", apex, "DQNLearner.stage(DQNLearner.update)", "dark")
        photograph(browser, "dashboard-phone.png", ppo, None, width=390)
        browser.close()


def trained(algorithm: str, steps: int, folder: Path) -> RunView:
    """A run on CartPole-v1, with the files of its stages named from the root of the repository."""
    run = folder / algorithm
    words = [
        "train",
        algorithm,
        "--env",
        "CartPole-v1",
        "--steps",
        str(steps),
        "--logdir",
        str(run),
        "--quiet",
    ]
    if pipeflow(words):
        raise SystemExit(1)
    view = read(run / FILE)
    nodes = tuple(replace(node, site=node.site.removeprefix(f"{ROOT}/")) for node in view.graph.nodes)
    return replace(view, graph=replace(view.graph, nodes=nodes))


def photograph(
    browser: Browser,
    name: str,
    view: RunView,
    stage: str | None,
    theme: Literal["light", "dark"] = "light",
    width: int = 1280,
) -> None:
    """Write a picture of a run's page, with this stage picked; a phone's is of one screen."""
    server = PageServer(lambda: view)
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=theme)
    page = context.new_page()
    page.goto(server.url)
    page.locator("#chart-1 canvas").wait_for()
    if stage is not None:
        page.get_by_title(stage).click()
        page.locator("#details-chart canvas").wait_for()
    taken = page.screenshot(full_page=stage is not None)
    context.close()
    server.close()
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(COLOURS).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
