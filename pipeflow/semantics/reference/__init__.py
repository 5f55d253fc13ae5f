"""The reference interpreter: what a plan means, in the shortest code that says it, with no thought of speed.

Every node is a plain generator that reads its input's. Actors are plain objects, and a call to one runs at once,
when the driver issues it: calls to one actor take effect in that order anyway (law 9), and nobody sees a result
before its time. What an engine decides is left open as a choice: which result comes next, and whether it is
there yet when it is asked for. `every_outcome` goes through all choices of a small plan. Fairness (law 12) is
not in here, for it is about when and not about what.

A plan is run many times over, so its iterables must allow to be read again and its functions must be pure; its
actors are made anew each time. Deaths of actors are not in here either: law 19 says what they may cost.
"""

from pipeflow.semantics.reference.choices import TooManyWays as TooManyWays
from pipeflow.semantics.reference.outcomes import Outcome as Outcome
from pipeflow.semantics.reference.outcomes import admits as admits
from pipeflow.semantics.reference.outcomes import every_outcome as every_outcome
