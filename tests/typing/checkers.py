"""mypy and pyright as the type tests run them: once over all files, their reports as data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ACCEPT = sorted(path for path in (HERE / "accept").glob("*.py") if path.name != "__init__.py")
REJECT = sorted(path for path in (HERE / "reject").glob("*.py") if path.name != "__init__.py")


@dataclass(frozen=True)
class Diagnostic:
    """One report of a checker.

    Attributes:
        file: the file it is about.
        line: the line, from 1.
        code: mypy's error code or pyright's rule.
        message: what a user reads, without the place.
        notes: the notes that mypy adds.
    """

    file: Path
    line: int
    code: str
    message: str
    notes: tuple[str, ...] = ()

    @override
    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}: {self.message}  [{self.code}]"


def mypy(files: Sequence[Path], cache: Path) -> list[Diagnostic]:
    """What ``mypy --strict`` reports in the files, with ``truthy-bool``, which docs/typing.md asks for.

    Raises:
        RuntimeError: mypy did not come to an end.
    """
    options = ["--strict", "--enable-error-code=truthy-bool", "--follow-imports=silent", "--output=json"]
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={cache}", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        message = f"mypy failed: {done.stdout}{done.stderr}"
        raise RuntimeError(message)
    found: list[Diagnostic] = []
    for text in done.stdout.splitlines():
        report = json.loads(text)
        notes = tuple((report["hint"] or "").splitlines())
        file = (ROOT / report["file"]).resolve()
        found.append(Diagnostic(file, report["line"], report["code"], report["message"], notes))
    return found


def pyright(files: Sequence[Path], folder: Path) -> list[Diagnostic]:
    """What pyright reports in the files, in its standard mode.

    Args:
        files: the files to check.
        folder: where to put a configuration; pyright takes the files' paths relative to it.

    Raises:
        RuntimeError: pyright did not come to an end.
    """
    settings = {
        "include": [os.path.relpath(file, folder) for file in files],
        "exclude": [],
        "typeCheckingMode": "standard",
        "reportUnusedExpression": "none",
        "reportUnusedCoroutine": "none",
        "pythonVersion": f"{sys.version_info.major}.{sys.version_info.minor}",
        "stubPath": str(ROOT / "typings"),
        "extraPaths": [str(ROOT)],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--project", str(folder), "--pythonpath", sys.executable]
    quiet = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(
        [*command, "--outputjson"], cwd=ROOT, env=quiet, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        message = f"pyright failed: {done.stdout}{done.stderr}"
        raise RuntimeError(message)
    found: list[Diagnostic] = []
    for report in json.loads(done.stdout)["generalDiagnostics"]:
        file = Path(report["file"]).resolve()
        line = report["range"]["start"]["line"] + 1
        found.append(Diagnostic(file, line, report.get("rule", ""), report["message"]))
    return found
