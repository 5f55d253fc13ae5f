"""Runs on a Ray cluster of several nodes, all of them on this machine."""
