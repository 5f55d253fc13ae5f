"""Runtime environments, as far as the Ray engine checks them."""

from typing import Any, ClassVar

class RuntimeEnv(dict[str, Any]):
    known_fields: ClassVar[set[str]]
    # `object`: each field is checked by Ray, and its types differ between releases.
    def __init__(self, **fields: object) -> None: ...
