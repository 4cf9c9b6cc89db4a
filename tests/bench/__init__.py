"""Benchmarks: how fast the code is, reported as numbers and never asserted."""
