"""Carry out `bakeoff eval --watch`: after every save, run what changed, and reuse all other answers."""

from itertools import islice

from bakeoff._kernel.text import count_of
from bakeoff.cli.console import say, warn
from bakeoff.cli.declare import PASSED
from bakeoff.cli.eval import EvalRunFlags, run_options
from bakeoff.cli.flags import EndingFlags, SelectionFlags
from bakeoff.cli.run_plan import CheckedPlan, check_plan, conclude
from bakeoff.cli.watching import WatchSession, open_watch
from bakeoff.doors.eval.config import PromptSuite
from bakeoff.doors.eval.find import find_config, read_suite
from bakeoff.doors.eval.plan import DOOR, EvalRequest, build_plan, settings_of
from bakeoff.engine.reuse import count_finished, delete_runs, past_runs, reusable_records, start_run
from bakeoff.engine.watch import Changes, WatchLoop, forget_modules, source_files
from bakeoff.plan import Plan
from bakeoff.storage.run_folder import RunFolder

KEPT_RUNS = 20
"""The number of runs of a file that a watch searches for answers, and the number of its own runs that it keeps."""

_WATCH = "watch"  # marks the beginning of a run as one of a watch: only such runs are ever deleted
_MAX_SOURCES = 2000


def watch_eval(
    request: EvalRequest, flags: EvalRunFlags, selection: SelectionFlags, ending: EndingFlags, *, opened: bool
) -> int:
    """Run cycles until Ctrl-C, and return the exit code of the last one."""
    with open_watch(flags, selection, ending) as session:
        request = request.model_copy(update={"path": find_config(request.path)})  # a wrong path is an error at once
        return _EvalWatch(request, flags, selection, session, opened=opened).loop.run()


class _EvalWatch:
    """The cycles of one watch."""

    def __init__(
        self,
        request: EvalRequest,
        flags: EvalRunFlags,
        selection: SelectionFlags,
        session: WatchSession,
        *,
        opened: bool,
    ) -> None:
        self._request, self._flags, self._selection = request, flags, selection
        self._session, self._opened = session, opened
        self._suite: PromptSuite | None = None  # as it was read last
        self._runs: list[RunFolder] | None = None  # of this file, newest first
        self._last: RunFolder | None = None  # the run of the last cycle that ended
        self._code = PASSED  # of that run
        self.loop = WatchLoop(self._sources, self._cycle, say)

    def _sources(self) -> set[str]:
        """Return all files that the configuration was read from, and the Python modules beside it."""
        assert self._request.path is not None
        file = self._request.path.absolute()
        named = self._suite.sources if self._suite else ()
        beside = source_files(file.parent.resolve(), ".py", {str(self._flags.results.resolve())})
        return {str(file.resolve()), *(str(each.resolve()) for each in named), *islice(beside, _MAX_SOURCES)}

    def _cycle(self, changed: Changes) -> int:
        forget_modules(changed, self._sources())
        self._suite = suite = read_suite(self._request.path)
        warn(suite.warnings)
        plan = self._selection.applied(build_plan(suite, self._request))
        checked = check_plan(plan, self._session.limited(run_options(self._flags, plan)))
        if self._last is not None and _is_complete(self._last, plan):
            say("nothing to run: no prompt, subject, case or scorer has changed")
        else:
            self._evaluate(checked)
        return self._code

    def _evaluate(self, checked: CheckedPlan) -> None:
        plan, options = checked.plan, checked.options
        if self._runs is None:
            file = settings_of(plan).file
            self._runs = past_runs(
                options.results, lambda before: before.door == DOOR and settings_of(before).file == file
            )
        earlier = self._runs[:KEPT_RUNS]
        carried = reusable_records(earlier, plan)
        self._session.keep_loaded([str(spec.options["model"]) for spec in plan.subjects if "model" in spec.options])
        folder = start_run(plan, options, carried, **{_WATCH: True})
        self._runs.insert(0, folder)  # also if it breaks: its answers are paid for
        if earlier:
            runs = earlier[0].name if len(earlier) == 1 else count_of(len(earlier), "run")
            again = len(carried) - count_finished(carried, plan)
            say(
                f"{count_of(plan.size - len(carried), 'answer')} to get; {len(carried):,} of {plan.size:,} reused from "
                f"{runs}{f', {again:,} of them scored again' if again else ''}"
            )
        ended = self._session.run(checked, folder)
        self._code = conclude([ended], self._session.ending, opened=self._opened)
        self._opened, self._last = False, folder
        if ended.interrupted:  # nothing is deleted: this run may have fewer answers than an older one
            self.loop.ended = True
            return
        delete_runs([run for run in self._runs if run.beginning().get(_WATCH) is True][KEPT_RUNS:])
        self._runs = [run for run in self._runs if run.path.exists()]


def _is_complete(run: RunFolder, plan: Plan) -> bool:
    """Tell whether a run is one of this very plan, and complete."""
    before = run.read_plan()
    same_thresholds = {case.id: before.threshold_of(case) for case in before.cases} == {
        case.id: plan.threshold_of(case) for case in plan.cases
    }
    finished = count_finished(reusable_records([run], plan), plan)
    return same_thresholds and before.size == plan.size == finished
