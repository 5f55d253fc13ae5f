"""Several nodes on one machine, as far as the tests use them."""

from collections.abc import Mapping

from ray._private.node import Node

class Cluster:
    address: str
    def __init__(
        self, initialize_head: bool = False, head_node_args: Mapping[str, object] | None = None
    ) -> None: ...
    def add_node(self, *, num_cpus: int = 1, resources: Mapping[str, float] = ...) -> Node: ...
    def remove_node(self, node: Node, allow_graceful: bool = True) -> None: ...
    def shutdown(self) -> None: ...
