"""The peers' programs, each a process of its own, and the environments of those that do not fit this one."""
