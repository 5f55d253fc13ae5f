"""A first plan without any learning: actors that count words in parallel, one that adds the counts up.

python examples/first_plan.py [inline|ray]
"""

from __future__ import annotations

import sys
from collections import Counter

from pipeflow import actors, from_shards, gather_async, take

SHARDS = [
    ["the plan is an expression", "the checker reads the plan"],
    ["the engine runs the plan", "nothing starts before it runs"],
]


class Tally:
    """Keeps the counts: an actor is a plain class."""

    def __init__(self, smallest: int) -> None:
        self._smallest = smallest
        self._counts: Counter[str] = Counter()

    def add(self, words: list[str]) -> dict[str, int]:
        """Count the words and return all that were seen often enough so far."""
        self._counts.update(words)
        return {word: count for word, count in self._counts.items() if count >= self._smallest}


def split(line: str) -> list[str]:
    """A stage is a plain function, too."""
    return line.split()


def main(engine: str) -> None:
    tally = actors(Tally, 1, smallest=2)
    plan = (
        from_shards(SHARDS)  # ParallelStream[str]: one shard an actor
        | split  # ParallelStream[list[str]]: runs inside each shard
        | gather_async()  # Stream[list[str]]: as the lines become ready
        | tally.stage(Tally.add)  # Stream[dict[str, int]]: runs inside the tally
        | take(4)
    )
    print(plan.explain())
    for counts in plan.run("ray" if engine == "ray" else "inline"):
        print(counts)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "inline")
