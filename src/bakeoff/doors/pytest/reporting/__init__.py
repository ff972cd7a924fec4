"""Reports of the evals of a pytest session. The plugin uses `register` alone.

hooks      pytest's hooks, which import the rest when there is something to report
numbers    the numbers of a suite                    gates     gates on the whole run
blocks     the summary as blocks                     terminal  lines of tests, tool calls, the summary
eval_file  the file of --eval-json, merging shards   source    evals as a plan and records
calibrated whether judges have labels                session_summary  the numbers of a session and its gates
ci         JUnit properties, GitHub annotations      ending    the end of a session: judge, write, print
"""

from bakeoff.doors.pytest.reporting.hooks import register

__all__ = ["register"]
