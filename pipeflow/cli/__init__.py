"""The command line: `pipeflow train`, `show`, `eval`, `graph`, `list` and `simulate`.

The only package that prints, and the only one that knows of files, terminals and signals. What it offers is
made of `pipeflow.algorithms`, `pipeflow.rl` and `Stream.run`, which a program can use as well without it.
"""

from pipeflow.cli.entry import main as main
