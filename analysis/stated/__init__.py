"""Reads what agents say of their goal and of being tested, and holds it against what they did."""
