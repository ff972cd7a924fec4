"""Estimate what a plan will cost before it runs."""

from collections.abc import Callable, Mapping

from bakeoff._kernel.model import FrozenModel
from bakeoff.models.prices import Price, PriceOptions, cost_of
from bakeoff.models.providers import ModelName, parse_model_name
from bakeoff.plan import Plan, SubjectSpec
from bakeoff.record import Usage

CHARS_PER_TOKEN = 4  # for English and code: close enough for all current tokenizers
OUTPUT_TOKENS = 500  # of one answer, without history
AGENT_STEPS = 4  # of a tool loop, without history; each step sends all earlier messages again

PriceOf = Callable[[ModelName], Price | None]


class CostEstimate(FrozenModel):
    """The likely usage of one subject, and what the estimate is based on."""

    subject: str
    trials: int
    usage: Usage  # its cost is None if the price is unknown
    basis: str


def estimate_plan(plan: Plan, price_of: PriceOf, history: Mapping[str, Usage] | None = None) -> list[CostEstimate]:
    """Return an estimate for each subject that calls a model. `history` is the mean usage of its earlier trials."""
    asking = [spec for spec in plan.subjects if spec.kind in ("model", "agent")]
    return [_estimate(plan, spec, price_of, (history or {}).get(spec.name)) for spec in asking]


def _estimate(plan: Plan, spec: SubjectSpec, price_of: PriceOf, past: Usage | None) -> CostEstimate:
    trials = plan.rounds * len(plan.cases)
    model, given = str(spec.options["model"]), spec.options.get("price")
    own = PriceOptions.model_validate(given).price(model) if isinstance(given, dict) else None
    price = own or price_of(parse_model_name(model))
    if past is not None:
        counts = past.model_dump(exclude={"cost"})
        usage = Usage(**{name: count * trials for name, count in counts.items()})
        basis = "the mean of earlier trials"
    else:
        usage, basis = _guess(plan, spec)
    usage = usage.model_copy(update={"cost": cost_of(usage, price)})
    return CostEstimate(subject=spec.name, trials=trials, usage=usage, basis=basis)


def _guess(plan: Plan, spec: SubjectSpec) -> tuple[Usage, str]:
    steps = _at_most(spec.options.get("max_steps"), AGENT_STEPS) if spec.kind == "agent" else 1
    answer = _at_most(spec.options.get("max_tokens"), OUTPUT_TOKENS)
    system = len(str(spec.options.get("system") or ""))
    prompts = sum((system + len(case.prompt)) // CHARS_PER_TOKEN + 1 for case in plan.cases)
    # Step k repeats the prompt and the k-1 answers before it.
    repeated = answer * steps * (steps - 1) // 2 * len(plan.cases)
    usage = Usage(
        requests=plan.rounds * len(plan.cases) * steps,
        input=plan.rounds * (prompts * steps + repeated),
        output=plan.rounds * len(plan.cases) * steps * answer,
    )
    return usage, f"{CHARS_PER_TOKEN} characters a token, {answer} tokens an answer, {steps} step{'s' * (steps > 1)}"


def _at_most(limit: object, guess: int) -> int:
    return min(limit, guess) if isinstance(limit, int) else guess
