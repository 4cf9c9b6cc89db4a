"""Import of the paper's public checkpoints as records of this project, without executing a pickle.

Read order: `inert` and `pickles` (bytes to plain data), `checkpoint` and `names` (what must be there), `messages`,
`quarters` and `calls` (what was said and done), `phases` and `books` (what it means in the firm), `convert` (one run),
`story` and `records` (its record), `places`, `importing`, `clusters` and `quality` (all of them), `command`.
"""
