"""What a session of pytest says of its evals. Two names are for the plugin: `add_options` and `register`.

hooks      pytest's hooks, which import the rest when there is something to report
lines      one test's line and its tool calls        numbers   a suite's numbers
blocks     the summary, in words                     gates     gates on the whole run, `baseline` among them
shape      the file of --eval-json                   merging   shards of one run
source     evals as a plan and records               page      the page of --eval-html
junit      scores as JUnit properties                actions   annotations and summary on GitHub
"""

from bakeoff.doors.pytest_plugin.reporting.hooks import EvalReporter, add_options, register

__all__ = ["EvalReporter", "add_options", "register"]
