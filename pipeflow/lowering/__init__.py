"""How a plan runs: programs are fused from the tree and installed in actors; one executor pulls the items.

Reading order: `program` and `fusion` (what runs where), `host` (inside an actor), `engine` (the protocol),
`executor` with `cursors` (the loop), `run` (what the user holds), and the engines.
"""
