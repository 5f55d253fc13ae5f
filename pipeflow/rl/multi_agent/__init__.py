"""Several agents in one environment: environments, the policies that act for them, workers, and their data."""
