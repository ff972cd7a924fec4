"""The door for coding agents: exercises in the layout of Exercism, agents that are described in YAML."""
