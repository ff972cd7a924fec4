"""The door of `bakeoff eval`: your own prompts × models × scorers, from one file."""
