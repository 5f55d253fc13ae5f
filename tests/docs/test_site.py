"""`make docs` fails at a warning. That it builds the site as it is, is a part of `make test`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS

ROOT = DOCS.parent
CONFIGURATION = """\
site_name: planted
strict: true
validation: {omitted_files: warn, absolute_links: warn, unrecognized_links: warn, anchors: warn}
theme: {name: material, font: %s}
hooks: [scripts/site/links.py]
nav: [index.md, contributing.md, changelog.md, a.md]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with the hook."""
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / name).write_text(f"# {name}\n", encoding="utf-8")
    shutil.copytree(ROOT / "scripts" / "site", tmp_path / "scripts" / "site")
    (tmp_path / "docs").mkdir()
    return tmp_path


def build(project: Path, page: str, font: str = "false") -> tuple[int, str]:
    """The exit code and the output of a build with a page a.md."""
    (project / "properdocs.yml").write_text(CONFIGURATION % font, encoding="utf-8")
    (project / "docs" / "a.md").write_text(page, encoding="utf-8")
    command = [sys.executable, "-m", "properdocs", "build"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_page_whose_links_lead_somewhere_is_built(project: Path) -> None:
    (project / "data.json").write_text("{}", encoding="utf-8")
    code, output = build(project, "# A\n\n[data](../data.json), [root](../README.md), [here](#a)\n")
    assert code == 0, output
    assert (project / "site" / "source" / "data.json").read_text(encoding="utf-8") == "{}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("[x](b.md)\n", "contains a link 'b.md', but the target is not found"),
        ("[x](../gone.py)\n", "contains a link 'source/gone.py.txt', but the target is not found"),
        ("# A\n\n[x](#b)\n", "there is no such anchor"),
        ("![x](https://elsewhere.org/x.png)\n", "loads https://elsewhere.org/x.png from another host"),
    ],
)
def test_a_planted_fault_ends_the_build(project: Path, page: str, message: str) -> None:
    code, output = build(project, page)
    assert code == 1
    assert message in output


@pytest.mark.slow
def test_fonts_of_another_host_end_the_build(project: Path) -> None:
    code, output = build(project, "# A\n", font="{text: Roboto}")
    assert code == 1
    assert "from another host" in output
