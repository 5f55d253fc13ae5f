"""The plans that `pipeflow check` is asked about: found in a module, built, and watched while they are.

Apart from `check`, which says what is wrong with them. Nothing is started: a module that runs a plan while it is
imported, or a function that does so instead of making one, is stopped there.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from pipeflow.cli.errors import UsageError, one_line
from pipeflow.dsl import Actors, ParallelStream, PlanError, Stream
from pipeflow.dsl.findings import Finding, refused
from pipeflow.dsl.sites import Site
from pipeflow.dsl.structure_rules import Part
from pipeflow.dsl.trees import walk

_WHOLE = re.compile(r"(?:\w+\.)*(?:Stream|Merged)\b")


# `Any`: plans of items of any type.
@dataclass
class Target:
    """A module and what was found in it.

    file: where it is written. plans: by name. parts: the streams and actors that had a name while the plans were
    built. findings: the plans that could not be built.
    """

    file: Path
    plans: dict[str, Stream[Any]] = field(default_factory=dict[str, Stream[Any]])
    parts: list[Part] = field(default_factory=list[Part])
    findings: list[Finding] = field(default_factory=list[Finding])


def target_of(reference: str) -> Target:
    """Import a module and build its plans.

    reference: MODULE or MODULE:PLAN, the module by its dotted name or as a file.
    Raises UsageError if there is no such module or plan, or if either raises anything but PlanError.
    """
    module_name, _, plan = reference.partition(":")
    find = _file_finder if module_name.endswith(".py") else _module_finder
    file, load = find(module_name)
    target, watch = Target(file), _Watch(str(file))
    with _building(target, module_name, "be imported"):
        with watch.watching():
            module = load()
        builders = dict(_named(module, plan, reference) if plan else _all(module))
        if not builders:
            problem = (
                f"{module_name} has no plan: no stream on its top level, and no function without arguments that "
                f"is annotated to return one; write one, or name what makes the plan, as {module_name}:PLAN"
            )
            raise UsageError(problem)
        made = {name: build for name, build in builders.items() if isinstance(build, Stream)}
        target.plans.update(made if plan else _whole(made))
        called: dict[str, set[CodeType]] = {}
        for name, build in builders.items():
            if not isinstance(build, Stream):
                with _building(target, f"{module_name}:{name}", "be built"):
                    watch.called.clear()
                    with watch.watching():
                        target.plans[name] = _made(build, f"{module_name}:{name}")
                    called[name] = watch.called - {inspect.unwrap(build).__code__}
        # A function that another one calls makes a part of that one's plan.
        for name, build in builders.items():
            if not isinstance(build, Stream) and any(build.__code__ in codes for codes in called.values()):
                target.plans.pop(name, None)
    target.parts.extend(Part(name, value) for name, value in watch.found)
    return target


# `Any`: as in `Target`.
def plans_of(reference: str) -> dict[str, Stream[Any]]:
    """The plans of a module, or the one that is named, by name, where each of them can be built.

    Raises UsageError where one cannot, and as `target_of` does.
    """
    target = target_of(reference)
    if target.findings:
        refusal = target.findings[0]
        raise UsageError(f"{refusal.site}: {refusal.message}")
    return target.plans


# Finding the module

Loader = Callable[[], ModuleType]


def _file_finder(name: str) -> tuple[Path, Loader]:
    file = Path(name).resolve()
    if not file.is_file():
        raise UsageError(f"there is no file {name}; give a module by its dotted name or by its path")
    folder, names = file.parent, [file.stem]
    while (folder / "__init__.py").is_file():
        folder, names = folder.parent, [folder.name, *names]
    _importable(folder)
    dotted = ".".join(names)
    if len(names) > 1:
        return file, lambda: importlib.import_module(dotted)
    return file, lambda: _script(file)


def _script(file: Path) -> ModuleType:
    """A file that is in no package, under a name that no other module has."""
    name = file.stem
    while name in sys.modules:
        if getattr(sys.modules[name], "__file__", None) == str(file):
            return sys.modules[name]
        name += "_"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # the name ends with .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module_finder(name: str) -> tuple[Path, Loader]:
    _importable(Path.cwd())
    try:
        spec = importlib.util.find_spec(name)
    except (Exception, SystemExit) as error:  # the packages around it are imported, and may raise anything
        problem = f"cannot find {name}: {type(error).__name__}: {one_line(error)}"
        raise UsageError(f"{problem}; give its dotted name, as in my_package.plans, or its path") from error
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise UsageError(
            f"there is no module {name}; give its dotted name, as in my_package.plans, or its path"
        )
    return Path(spec.origin).resolve(), lambda: importlib.import_module(name)


def _importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


# Finding the plans

# A plan that was made when the module was imported, or the function that makes it.
Builder = Stream[Any] | Callable[[], object]


def _named(module: ModuleType, name: str, reference: str) -> Iterator[tuple[str, Any]]:
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{reference}: the module has nothing of the name {name}")
        found = getattr(found, part)
    if isinstance(found, Stream):
        yield name, found
    elif inspect.isroutine(found):
        needed = ", ".join(_needed(found))
        if needed:
            raise UsageError(
                f"{reference} takes {needed}; name a function without arguments that makes the plan"
            )
        yield name, found
    else:
        raise UsageError(
            f"{reference} is of type {type(found).__name__}; name a stream or a function that makes one"
        )


def _all(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if isinstance(value, Stream):
            yield name, value
        elif inspect.isfunction(value) and value.__module__ == module.__name__:
            returned: object = value.__annotations__.get("return", "")
            text = returned if isinstance(returned, str) else getattr(returned, "__name__", "")
            if _WHOLE.match(text) and not _needed(value):
                yield name, value


def _needed(function: Callable[..., object]) -> list[str]:
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _whole(streams: dict[str, Stream[Any]]) -> dict[str, Stream[Any]]:
    """The streams that are not part of another one."""
    inner = {id(node) for stream in streams.values() for node in walk(stream.node) if node is not stream.node}
    return {name: stream for name, stream in streams.items() if id(stream.node) not in inner}


def _made(build: Callable[[], object], reference: str) -> Stream[Any]:
    made = build()
    if isinstance(made, ParallelStream):
        raise UsageError(f"{reference} makes {made!r}, which is still in its shards; gather it")
    if not isinstance(made, Stream):
        raise UsageError(
            f"{reference} makes {type(made).__name__}, not a stream; name a function that makes one"
        )
    return made


@contextlib.contextmanager
def _building(target: Target, what: str, verb: str) -> Generator[None]:
    """Make a `PlanError` a finding, and whatever else is raised one line.

    What the module prints meanwhile goes to stderr: the findings alone are the output.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except PlanError as error:
        target.findings.append(refused(error, Site(str(target.file), _line(error, target.file))))
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        place = Site(str(target.file), _line(error, target.file))
        problem = f"{type(error).__name__}: {one_line(error)}"
        raise UsageError(f"{what} cannot {verb}: {place}: {problem}; --debug shows where") from error


def _line(error: BaseException, file: Path) -> int:
    """The line of the file in which an error came up; 1 where it did not come up there."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 1
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if _is_in(frame.f_code, file)]
    return lines[-1] if lines else 1


def _is_in(code: CodeType, file: Path) -> bool:
    return code.co_filename == str(file)


class _Watch:
    """Looks on while a file's functions run: their names, which were called, and that none runs a plan."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.called: set[CodeType] = set()
        self.found: list[tuple[str, Stream[Any] | ParallelStream[Any, Any] | Actors[Any]]] = []

    @contextlib.contextmanager
    def watching(self) -> Generator[None]:
        before = sys.getprofile()
        sys.setprofile(self._look)
        try:
            yield
        finally:
            sys.setprofile(before)

    # `Any`: what an event comes with depends on its kind.
    def _look(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code is Stream.run.__code__:
            caller = frame.f_back
            assert caller is not None
            place = Site(caller.f_code.co_filename, caller.f_lineno)
            problem = f"{place}: a plan is run while it is only to be built"
            raise UsageError(f'{problem}; put what runs it under if __name__ == "__main__":')
        if event == "return" and frame.f_code.co_filename == self._file:
            self.called.add(frame.f_code)
            # A module's own names may be meant for others.
            if frame.f_code.co_name != "<module>":
                for name, value in frame.f_locals.items():
                    if isinstance(value, Stream | ParallelStream | Actors):
                        self.found.append((name, value))
