"""Methods that are passed unbound and overridden in the actor's class.

A plan names ``Learner.update`` and the actors may be of a class that derives from `Learner`: what is called is the
method of their own class, as ``actor.update`` would be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


# `Any`: methods of every signature, whose types were checked where they were passed.
def dispatched(method: Callable[..., Any], actor: object) -> Callable[..., Any]:
    """The method that the actor's class has in place of an unbound one of a class that it derives from.

    >>> class Base:
    ...     def name(self) -> str:
    ...         return "base"
    >>> class Derived(Base):
    ...     def name(self) -> str:
    ...         return "derived"
    >>> dispatched(Base.name, Derived()) is Derived.name
    True
    """
    name = getattr(method, "__name__", "")
    kind = type(actor)
    for owner in kind.__mro__:
        own = vars(owner).get(name)
        if own is method or (callable(own) and _same(own, method)):
            found: Callable[..., Any] = getattr(kind, name)
            return found
    return method


def _same(own: Callable[..., Any], method: Callable[..., Any]) -> bool:
    """Whether both are one method, of which a process may have got two copies."""
    places = [(getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (own, method)]
    return places[0] == places[1] and places[0][1] is not None and "<lambda>" not in places[0][1]
