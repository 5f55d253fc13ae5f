"""Each checker, once for all the type tests."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.typing.chains import write_chains
from tests.typing.checkers import ACCEPT, REJECT, Diagnostic, mypy, pyright
from tests.typing.differences import write_differences

Reports = dict[Path, list[Diagnostic]]


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules that are generated."""
    folder = tmp_path_factory.mktemp("typing").resolve()
    write_chains(folder)
    write_differences(folder)
    return folder


@pytest.fixture(scope="session")
def mypy_reports(generated: Path) -> Reports:
    """What mypy says of every file."""
    return _by_file(mypy([*ACCEPT, *REJECT, *sorted(generated.glob("*.py"))], generated / "cache"))


@pytest.fixture(scope="session")
def pyright_reports(generated: Path) -> Reports:
    """What pyright says of every file."""
    return _by_file(pyright([*ACCEPT, *REJECT, *sorted(generated.glob("*.py"))], generated))


def _by_file(diagnostics: list[Diagnostic]) -> Reports:
    found: Reports = defaultdict(list)
    for diagnostic in diagnostics:
        found[diagnostic.file].append(diagnostic)
    return found
