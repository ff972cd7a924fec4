"""Run trials on the nodes of a Ray cluster.

Like `open_local` of `engine.run`, `open_ray` opens resources and yields a runner for the jobs of a
`TrialPool`. Scheduling, budget and journal stay in the process of the pool.
"""
