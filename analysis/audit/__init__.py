"""The audit of runs: where each one left its goal first, by which call, and what only looks like it."""
