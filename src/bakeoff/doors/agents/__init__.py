"""The exercises door, `bakeoff agents`: benchmark command-line coding agents on exercises in Exercism's layout."""
