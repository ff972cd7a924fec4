"""Run trials on the nodes of a Ray cluster.

As `open_local` of `engine.run`, it opens what trials need and yields a runner, which a `TrialPool` gives one job after
another. Scheduling, budget and journal stay with the pool, in the process that was started.
"""
