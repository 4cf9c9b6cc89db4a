"""The paper's figures, tables and statements, computed from any runs: its published ones, or a user's own."""
