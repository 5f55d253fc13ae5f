"""Where actors may run that compute on a device."""

from __future__ import annotations

from typing import TypeVar

from pipeflow.dsl import Actors

W = TypeVar("W")


def on_device(device: str, actors: Actors[W], /) -> Actors[W]:
    """Actors that compute on a device: for "cuda" or "cuda:0" each reserves a core and a GPU.

    On Ray an actor that reserves no GPU is not shown any. In one process it means nothing.
    """
    return actors.resources(gpus=1.0) if device.partition(":")[0] == "cuda" else actors
