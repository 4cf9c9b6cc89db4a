"""The simulated firm: its market, books, tools, prompts and rules, without any model API or file format of runs."""
