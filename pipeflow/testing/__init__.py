"""For users who test a plan of their own: every law, and invariants of theirs, under many simulated schedules.

`check_laws` is the one to begin with. `pipeflow.testing.strategies`, which needs hypothesis, draws whole plans.
"""

from pipeflow.testing.checking import Checked as Checked
from pipeflow.testing.checking import Invariant as Invariant
from pipeflow.testing.checking import LawViolation as LawViolation
from pipeflow.testing.checking import check_laws as check_laws
from pipeflow.testing.checking import check_schedule as check_schedule
from pipeflow.testing.invariants import policy_lag_at_most as policy_lag_at_most
from pipeflow.testing.schedules import Schedule as Schedule
from pipeflow.testing.schedules import Simulated as Simulated
from pipeflow.testing.schedules import simulate as simulate
