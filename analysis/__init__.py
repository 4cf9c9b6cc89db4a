"""Reads recorded runs into scores, statistics and figures, and never steps an environment."""
