"""Attack Bakeoff in every way there is, and compare what succeeds with the promises in SECURITY.md."""
