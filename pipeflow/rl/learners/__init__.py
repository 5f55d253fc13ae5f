"""Learners: what owns a policy's parameters and improves them, one algorithm a module."""
