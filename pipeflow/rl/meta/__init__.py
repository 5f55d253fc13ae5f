"""Meta-learning: tasks that belong together, adaptation to one of them, and the learner of what to adapt from."""
