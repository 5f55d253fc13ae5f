"""PPO as a Spark streaming job: ``spark_ppo.py ITERATIONS WORKERS ENVS STEPS`` prints rates and times as JSON.

A streaming job has no loop, so, as in the paper, an iteration ends by writing the file that the stream takes as
its next batch. Sampling is the map over the batch's lines, one a worker; the training is its reduce. Sampling
and learning are done by pipeflow's own parts, so that the dataflow is all that differs. A worker stays in its
Python process as long as Spark keeps that process, and weights go out by broadcast: no state passes through
files.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from pyspark.broadcast import Broadcast
from pyspark.sql import DataFrame, SparkSession

from pipeflow.algorithms.ppo import PPOConfig, policy_of
from pipeflow.rl.batches import Advantages, Weights
from pipeflow.rl.learners.ppo import PPOLearner
from pipeflow.rl.returns import gae
from pipeflow.rl.rollouts import RolloutWorker

WARM_UP = 3


def config_of(workers: int, num_envs: int, steps: int) -> PPOConfig:
    """What both sides train with."""
    return PPOConfig(
        workers=workers,
        num_envs=num_envs,
        fragment_length=steps,
        epochs=4,
        lr=2.5e-4,
        minibatch_size=min(256, workers * num_envs * steps),
    )


@cache
def worker_of(index: int, num_envs: int, steps: int) -> RolloutWorker:
    """The worker of a shard in this Python process."""
    config = config_of(1, num_envs, steps)
    return RolloutWorker(config.env, policy_of(config), num_envs=num_envs, fragment_length=steps, index=index)


def sample(index: int, config: PPOConfig, weights: Broadcast[Weights]) -> tuple[Advantages, float]:
    """A shard's rows for one iteration, and the seconds that they took."""
    worker = worker_of(index, config.num_envs, config.fragment_length)
    started = time.perf_counter()
    worker.set_weights(weights.value)
    rows = gae(config.gamma, config.lam)(worker.sample())
    return rows, time.perf_counter() - started


def joined(one: tuple[Advantages, float], other: tuple[Advantages, float]) -> tuple[Advantages, float]:
    """The rows of both, and the seconds of the slower."""
    return Advantages.concatenate([one[0], other[0]]), max(one[1], other[1])


def train(iterations: int, config: PPOConfig, folder: Path) -> dict[str, float]:
    """Medians over the iterations: seconds of each, and of what they consist of."""
    spark = (
        SparkSession.builder.master(f"local[{config.workers}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.checkpointLocation", str(folder / "checkpoints"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    learner = PPOLearner(
        policy_of(config), lr=config.lr, epochs=config.epochs, minibatch_size=config.minibatch_size
    )
    ended: list[float] = []
    sampling: list[float] = []
    learning: list[float] = []
    batches: list[float] = []

    def iteration(batch: DataFrame, number: int) -> None:
        began = time.perf_counter()
        weights = spark.sparkContext.broadcast(learner.weights())
        shards = batch.repartition(config.workers).rdd  # in turn, so one line each
        rows, seconds = shards.map(lambda row: sample(int(row.value), config, weights)).reduce(joined)
        sampled = time.perf_counter()
        learner.update(rows)
        now = time.perf_counter()
        weights.destroy()
        sampling.append(seconds)
        learning.append(now - sampled)
        batches.append(now - began)
        ended.append(now)
        if len(ended) < iterations + WARM_UP:
            trigger(folder, config.workers, number + 1)

    (folder / "batches").mkdir()
    stream = spark.readStream.text(str(folder / "batches"))
    trigger(folder, config.workers, 0)
    query = stream.writeStream.foreachBatch(iteration).start()
    while len(ended) < iterations + WARM_UP and query.isActive:
        time.sleep(0.1)
    failure = query.exception()
    query.stop()
    spark.stop()
    if failure is not None:
        raise failure
    periods = [later - earlier for earlier, later in zip(ended[WARM_UP - 1 :], ended[WARM_UP:], strict=False)]
    seconds = sum(periods) / len(periods)
    return {
        "seconds": seconds,
        "steps_per_second": config.steps_per_update / seconds,
        "sampling": median(sampling[WARM_UP:]),
        "learning": median(learning[WARM_UP:]),
        "map and reduce": median(batches[WARM_UP:]) - median(sampling[WARM_UP:]) - median(learning[WARM_UP:]),
        "streaming": median(periods) - median(batches[WARM_UP:]),
    }


def trigger(folder: Path, workers: int, number: int) -> None:
    """Write the file that is the next batch: a line for every worker."""
    written = folder / f"{number}.txt"
    written.write_text("".join(f"{index}\n" for index in range(workers)))
    written.rename(folder / "batches" / written.name)  # in one step, so that the stream sees all of it


def main() -> None:
    iterations, workers, num_envs, steps = map(int, sys.argv[1:])
    os.environ["PYTHONPATH"] = str(ROOT)  # for Spark's Python processes, which import what is above
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(train(iterations, config_of(workers, num_envs, steps), Path(folder))))


if __name__ == "__main__":
    # Functions of __main__ would be sent by value, without the cache of `worker_of`.
    from benchmarks.peers import spark_ppo

    spark_ppo.main()
