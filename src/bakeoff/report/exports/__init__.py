"""Write a run in the formats of other programs: JUnit, Inspect, tables, GitHub Actions, badges."""
