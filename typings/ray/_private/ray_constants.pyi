"""The one constant of Ray's own that the engine sets."""

ENABLE_RAY_CLUSTER: bool
