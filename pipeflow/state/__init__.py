"""The states of what runs, as arrays and numbers under flat names, and the folders that they are kept in.

Apart from what has states, which knows nothing of files: a state may come from anybody, and reading it runs no
code that it names. `values` has the flat names, `writing` and `reading` turn trees of Python values into such
states and back, `objects` does so for whole objects, `folders` keeps states on disk.
"""
