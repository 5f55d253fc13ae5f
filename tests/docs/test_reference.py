"""The reference has every public name of the DSL and every public module of the other packages, each once."""

from __future__ import annotations

import re
from collections import Counter

import pipeflow
from tests.docs.pages import DOCS

PACKAGE = DOCS.parent / "pipeflow"
SHOWN = Counter(
    name
    for page in sorted((DOCS / "reference").rglob("*.md"))
    for name in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)
)
# How plans are run, and what other modules of the same package put a face on.
INTERNAL = (
    r"lowering\.(?!run$|stats$|bottleneck$|stepping$|checkpoint$|engine$|engines\.(ray|sim|inline)$)|"
    r"semantics\.(laws|reference)\.(?!law$)|"
    r"rl\.(acting|backpropagation|basic_spaces|environment_state|mujoco_state|sum_tree|threads)$|"
    r"(state\.tensors|testing\.parts)$"
)


def test_every_name_of_the_dsl_is_shown_once() -> None:
    names = {name.removeprefix("pipeflow."): count for name, count in SHOWN.items() if name.count(".") == 1}
    assert names == dict.fromkeys(pipeflow.__all__, 1)


def test_every_public_module_is_shown_once() -> None:
    modules = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for package in (
            "lowering",
            "semantics",
            "testing",
            "rl",
            "algorithms",
            "state",
            "tracking",
            "dashboard",
        )
        for path in (PACKAGE / package).rglob("[!_]*.py")
    }
    public = {module for module in modules if not re.match(INTERNAL, module)}
    packages = {"semantics.laws", "semantics.reference"}
    shown = {name.removeprefix("pipeflow."): count for name, count in SHOWN.items() if name.count(".") > 1}
    assert shown == dict.fromkeys(public | packages, 1)
