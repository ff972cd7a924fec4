"""Read the logs of other evaluation tools as plans and records, so that every report works on them.

Each format has a module with one function: path → `ForeignLog`. It yields one `LoggedTrial` for each trial of the log;
`reader` turns the trials into a plan and records, or into a run folder. Logs are untrusted: sizes, depths and numbers
are bounded, secrets are redacted, and nothing that a log names is opened or run.
"""
