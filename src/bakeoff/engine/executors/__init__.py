"""Run trials on the nodes of a Ray cluster.

Like `open_local` of `engine.run`, it opens the resources of trials and yields a runner, to which a `TrialPool` gives
one job after another. Scheduling, budget and journal stay with the pool, in the process that was started.
"""
