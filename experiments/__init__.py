"""Runs agents in the firm and records every run: treatments, model adapters, the agent loop, sweeps."""
