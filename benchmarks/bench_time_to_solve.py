"""Wall seconds until CartPole-v1 is solved, three seeds, each library with the settings that it recommends itself.

    python benchmarks/bench_time_to_solve.py

Pipeflow with its defaults in one process, Stable-Baselines3 with its zoo's settings, RLlib with those of its tuned
example. What solved means, and what the clock counts, is in `peers.solve`.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Case, Contestant, Json, Result, Target, measure, options, show, subject, write
from benchmarks.peers.environments import python_of

PIPEFLOW, SB3, RLLIB = "pipeflow", "Stable-Baselines3", "RLlib"
SEEDS = (1, 2, 3)


def solving(python: Path, contestant: str, outcomes: list[Json]) -> Contestant:
    """Seconds that the next seed takes; the outcome goes to the list as well."""
    seeds = iter(SEEDS)

    def solved() -> float:
        seed = next(seeds)
        outcome = subject(python, "peers/solve.py", contestant, str(seed))
        outcomes.append({"contestant": contestant, "seed": seed, **outcome})
        print(outcomes[-1], flush=True)
        return outcome["seconds"]

    return solved


def main() -> None:
    chosen = options(__doc__)
    here = Path(sys.executable)
    outcomes: list[Json] = []
    contestants = {
        "PPO": {
            PIPEFLOW: (here, "pipeflow-ppo"),
            SB3: (here, "sb3-ppo"),
            RLLIB: (python_of("rllib"), "rllib-ppo"),
        },
        "DQN": {PIPEFLOW: (here, "pipeflow-dqn"), SB3: (here, "sb3-dqn")},
    }
    cases: list[Case] = []
    for name, among in contestants.items():
        solvers = {who: solving(python, which, outcomes) for who, (python, which) in among.items()}
        figures = measure(solvers, 1 if chosen.quick else len(SEEDS), warm_up=False)
        cases.append(Case(f"{name}, CartPole-v1 solved", "s", figures))
    targets = [
        Target(f"× the seconds of {peer}'s {case.name[:3]}", case.ratio(PIPEFLOW, peer), "at most", 1.0)
        for case in cases
        for peer in case.figures
        if peer != PIPEFLOW
    ]
    result = Result("time_to_solve", cases, targets, {"outcomes": outcomes})
    show(result)
    if not chosen.quick:
        write(result)


if __name__ == "__main__":
    main()
