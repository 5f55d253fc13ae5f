"""Parts of the domain: environments and spaces, batches and returns, policies, losses, learners, rollouts."""
