"""Estimate the cost of a plan before it runs, and of a run with a simulated prompt cache.

The simulation assumes that each request extends the prefix of the previous request:

    prefix = in₁; cost = in₁·W
    for k ≥ 2: new = max(0, inₖ − prefix); cost += prefix·R + new·W; hits += prefix; writes += new; prefix += new

W is the price of writing a token to the cache, R of reading one. Output costs the same.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import BakeoffError
from bakeoff.models.gateway import kept_models, known_price
from bakeoff.models.prices import Price, PriceOptions, cost_of, exact_cost
from bakeoff.models.providers import ModelName, parse_model_name
from bakeoff.plan import Plan, SubjectSpec
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.storage.run_folder import run_folders

CHARS_PER_TOKEN = 4  # for English and code: close enough for all current tokenizers
OUTPUT_TOKENS = 500  # of one answer, without earlier runs
_PAST_RUNS = 5  # searched for the usage of a trial
_MODEL_KINDS = ("model", "agent")
AGENT_STEPS = 4  # of a tool loop, without earlier runs

PriceOf = Callable[[ModelName], Price | None]


class CostEstimate(FrozenModel):
    """The likely usage of one subject, and what the estimate is based on."""

    subject: str
    trials: int
    usage: Usage  # its cost is None if the price is unknown
    basis: str


def estimate_plan(plan: Plan, price_of: PriceOf, history: Mapping[str, Usage] | None = None) -> list[CostEstimate]:
    """Estimate the usage of subjects that call models. `history` has means of past trials."""
    asking = [spec for spec in plan.subjects if spec.kind in _MODEL_KINDS]
    return [_estimate(plan, spec, price_of, (history or {}).get(spec.name)) for spec in asking]


def _estimate(plan: Plan, spec: SubjectSpec, price_of: PriceOf, past: Usage | None) -> CostEstimate:
    """Estimate the usage of a subject, from the mean of its past trials if there are any."""
    trials = plan.rounds * len(plan.cases)
    model, given = str(spec.options["model"]), spec.options.get("price")
    own = PriceOptions.model_validate(given).price(model) if isinstance(given, dict) else None
    price = own or price_of(parse_model_name(model))
    if past is not None:
        counts = past.model_dump(exclude={"cost"})
        usage = Usage(**{name: count * trials for name, count in counts.items()})
        basis = "the mean of earlier trials"
    else:
        steps = _at_most(spec.options.get("max_steps"), AGENT_STEPS) if spec.kind == "agent" else 1
        answer = _at_most(spec.options.get("max_tokens"), OUTPUT_TOKENS)
        system = len(str(spec.options.get("system") or ""))
        prompts = sum((system + len(case.prompt)) // CHARS_PER_TOKEN + 1 for case in plan.cases)
        # Step k repeats the prompt and the k-1 answers before it.
        repeated = answer * steps * (steps - 1) // 2 * len(plan.cases)
        sent = plan.rounds * (prompts * steps + repeated)
        usage = Usage(requests=trials * steps, input=sent, output=trials * steps * answer)
        told = f"{CHARS_PER_TOKEN} characters a token, {answer} tokens an answer"
        basis = f"{told}, {steps} step{'s' * (steps > 1)}"
    usage = usage.model_copy(update={"cost": cost_of(usage, price)})
    return CostEstimate(subject=spec.name, trials=trials, usage=usage, basis=basis)


def _at_most(limit: object, guess: int) -> int:
    return min(limit, guess) if isinstance(limit, int) else guess


def estimate_run(plan: Plan, results: Path) -> list[CostEstimate]:
    """Return the likely usage of a plan's models, using earlier runs in `results`."""
    if not _models_of(plan):
        return []
    gateway, past = kept_models(), usage_before(results, plan)
    return estimate_plan(plan, lambda name: known_price(gateway, name.provider, name.model), past)


def usage_before(results: Path, plan: Plan) -> dict[str, Usage]:
    """Return each subject's mean usage per trial in its latest run with the same model."""
    models = _models_of(plan)
    found: dict[str, Usage] = {}
    for folder in reversed(run_folders(results)[-_PAST_RUNS:]):
        if models.keys() == found.keys():
            break
        try:
            before = folder.read_plan()
            same = {name for name, model in _models_of(before).items() if models.get(name) == model}
            found = {**(_mean_usage(folder.latest_records(before), same) if same else {}), **found}
        except (BakeoffError, OSError):  # without it, the estimate is only less precise
            continue
    return found


def _models_of(plan: Plan) -> dict[str, str]:
    return {spec.name: str(spec.options.get("model")) for spec in plan.subjects if spec.kind in _MODEL_KINDS}


def _mean_usage(records: Iterable[Record], subjects: set[str]) -> dict[str, Usage]:
    """Return mean token counts without costs, since prices may have changed."""
    used: dict[str, list[Usage]] = {}
    for record in records:
        # Ignore trials that were lost before their first request.
        if record.subject in subjects and record.transcript and record.transcript.usage.tokens:
            used.setdefault(record.subject, []).append(record.transcript.usage)
    means = {}
    for subject, usages in used.items():
        counted = sum(usages, NO_USAGE).model_dump(exclude={"cost"})
        means[subject] = Usage(**{name: round(count / len(usages)) for name, count in counted.items()})
    return means


# Usual cache prices as shares of the input price, for models without known ones.
READ_SHARE = Decimal("0.1")
WRITE_SHARE = Decimal("1.25")


class CacheSimulation(FrozenModel):
    """Tokens, and USD if the price is known. `actual_cost` is the real cost of the run."""

    simulated_cost: float | None
    simulated_output_cost: float | None = None
    actual_cost: float | None
    saving: float | None  # negative if caching costs more than it saves
    hits: int
    writes: int
    output: int

    def as_cache_simulation(self) -> dict[str, float]:
        """Return the `cacheSimulation` object of a result file; empty if a cost is unknown."""
        if self.simulated_cost is None:
            return {}
        written = Decimal(str(self.simulated_output_cost or 0.0))
        return {
            "simulatedCostWithCache": self.simulated_cost,
            "simulatedInputCost": float(Decimal(str(self.simulated_cost)) - written),
            "simulatedOutputCost": float(written),
            "cacheHits": self.hits,
            "cacheWriteTokens": self.writes,
            "outputTokens": self.output,
        }


def simulate(steps: Iterable[Usage], price: Price | None) -> CacheSimulation:
    """Simulate one suite: the requests of one conversation in order."""
    return simulate_suites([steps], price)


def simulate_suites(suites: Iterable[Iterable[Usage]], price: Price | None) -> CacheSimulation:
    """Simulate several suites. Each is a conversation that begins with an empty cache."""
    hits = writes = output = 0
    simulated = written = actual = Decimal(0)
    for steps in suites:
        prefix = 0
        for usage in steps:
            new = max(0, usage.input - prefix)
            if price is not None:
                rates = price.at(usage.input)
                read = READ_SHARE * rates.input if rates.cache_read is None else rates.cache_read
                write = WRITE_SHARE * rates.input if rates.cache_write is None else rates.cache_write
                simulated += prefix * read + new * write + usage.output * rates.output
                written += usage.output * rates.output
                actual += exact_cost(usage, price)
            hits, writes, output = hits + prefix, writes + new, output + usage.output
            prefix += new
    return CacheSimulation(
        simulated_cost=float(simulated) if price else None,
        simulated_output_cost=float(written) if price else None,
        actual_cost=float(actual) if price else None,
        saving=float(actual - simulated) if price else None,
        hits=hits,
        writes=writes,
        output=output,
    )
