"""Where the reports of a run go: CSV, TensorBoard, Weights & Biases, MLflow, videos of evaluation episodes.

Apart from the plans, which only deliver reports, and from the command line, which uses the same trackers for
`pipeflow train`. A tracker is a description, as a plan is; what it opens is closed with the run.
"""

from pipeflow.tracking.csv_table import CSV
from pipeflow.tracking.errors import TrackingError
from pipeflow.tracking.mlflow import MLflow
from pipeflow.tracking.records import Record, Recorder, Sink, TrackedRun, Tracker
from pipeflow.tracking.reporting import ReportTo, report_to
from pipeflow.tracking.tensorboard import TensorBoard
from pipeflow.tracking.wandb import WandB

__all__ = [
    "CSV",
    "MLflow",
    "Record",
    "Recorder",
    "ReportTo",
    "Sink",
    "TensorBoard",
    "TrackedRun",
    "Tracker",
    "TrackingError",
    "WandB",
    "report_to",
]
