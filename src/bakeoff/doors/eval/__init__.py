"""The door of `bakeoff eval`: own prompts × own models × scorers, from one file."""
