"""`MLflow`: a run at an MLflow tracking server, or in a database file. Extra: `mlflow`."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from pipeflow.state.values import Json
from pipeflow.tracking.errors import TrackingError, first_line, require
from pipeflow.tracking.records import Record

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

_LOGGER = logging.getLogger(__name__)
_SEND_SECONDS = 1.0
# What MLflow takes in one request, and how long a parameter may be.
_MOST_METRICS = 1000
_MOST_PARAMS = 100
_PARAM_LENGTH = 6000
# Kept while the server cannot be reached; older ones are given up.
_MOST_WAITING = 100_000


@dataclass(frozen=True)
class MLflow:
    """A run at an MLflow server; the horizontal axis is environment steps.

    MLFLOW_TRACKING_URI says where; without it MLflow takes `mlflow.db` in the working folder. What is None is what
    MLflow's own variables say: MLFLOW_EXPERIMENT_NAME or MLFLOW_EXPERIMENT_ID. A run that is gone on with goes on
    under the same id.

    experiment: its name; made where there is none. name: of the run. config: what the run was made with, logged as
    parameters.
    Raises TrackingError if mlflow is not installed.
    """

    experiment: str | None = None
    name: str | None = None
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        require("mlflow", "mlflow", "MLflow")

    def open(self, steps: int = 0, run_id: str | None = None, /) -> MLflowRun:
        """Begin the run. Raises TrackingError if MLflow refuses or cannot be reached."""
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        try:
            client = MlflowClient()
            if run_id is None:
                run_id = self._created(client)
            else:
                client.update_run(run_id, status="RUNNING")
        except (MlflowException, ImportError, OSError) as error:
            message = f"MLflow cannot start a run: {first_line(error)}; check MLFLOW_TRACKING_URI"
            raise TrackingError(message) from error
        return MLflowRun(client, run_id)

    def _created(self, client: MlflowClient) -> str:
        from mlflow.entities import Param

        run_id: str = client.create_run(self._experiment_id(client), run_name=self.name).info.run_id
        params = [Param(name, value[:_PARAM_LENGTH]) for name, value in _flat(self.config)]
        for first in range(0, len(params), _MOST_PARAMS):
            client.log_batch(run_id, params=params[first : first + _MOST_PARAMS])
        return run_id

    def _experiment_id(self, client: MlflowClient) -> str:
        name = self.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME")
        if not name:
            return os.environ.get("MLFLOW_EXPERIMENT_ID", "0")  # MLflow's own default experiment
        found = client.get_experiment_by_name(name)
        return client.create_experiment(name) if found is None else found.experiment_id


class MLflowRun:
    """The open run of an `MLflow`. clock: in seconds.

    A server that cannot be reached does not end a training: what it was not told is kept and sent again, and a
    warning says so.
    """

    def __init__(
        self, client: MlflowClient, run_id: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._run_id = run_id
        self._clock = clock
        self._sent_at = clock()
        self._waiting: deque[Metric] = deque(maxlen=_MOST_WAITING)

    @property
    def run_id(self) -> str:
        """MLflow's id of the run."""
        return self._run_id

    def record(self, record: Record, /) -> None:
        """Log every number that is one; they are sent about once a second."""
        from mlflow.entities import Metric

        now, steps = int(time.time() * 1000), record.report.lifetime_steps
        self._waiting.extend(Metric(name, value, now, steps) for name, value in record.curves().items())
        if self._clock() - self._sent_at >= _SEND_SECONDS:
            self._send()

    def close(self, error: BaseException | None = None, /) -> None:
        """Send what is left and end the run, as a failed one where an error ended it."""
        from mlflow.exceptions import MlflowException

        self._send()
        ended = (
            "FINISHED" if error is None else "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
        )
        try:
            self._client.set_terminated(self._run_id, status=ended)
        except (MlflowException, OSError) as refusal:
            _LOGGER.warning("MLflow was not told that run %s ended: %s", self._run_id, first_line(refusal))

    def _send(self) -> None:
        from mlflow.exceptions import MlflowException

        try:
            while self._waiting:
                part = list(islice(self._waiting, _MOST_METRICS))
                self._client.log_batch(self._run_id, metrics=part)
                for _ in part:
                    self._waiting.popleft()
        except (MlflowException, OSError) as error:
            _LOGGER.warning("%d points wait for MLflow: %s", len(self._waiting), first_line(error))
        self._sent_at = self._clock()


def _flat(config: Mapping[str, Json], prefix: str = "") -> Iterator[tuple[str, str]]:
    """A configuration's values as text, under names with dots."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, str(value)
