"""The statistical report on recorded runs: questions, families of tests, estimates, and what cannot be concluded."""
