"""Run trials: in this process, or on the nodes of a Ray cluster.

An executor opens what trials need and yields a runner, which a `TrialPool` gives one job after another. Scheduling,
budget and journal stay with the pool, in the process that was started.
"""
