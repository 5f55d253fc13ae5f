"""What a plan means: events, laws and their checkers over a trace."""
