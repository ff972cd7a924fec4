"""Evals are tests: run them with `pytest`. Replace `ask` by your application."""

from openai import AsyncOpenAI

from bakeoff import EvalCase, eval_suite
from bakeoff.models.embedded import EmbeddedServer
from bakeoff.scorers import Contains

QUESTIONS = [
    {"input": "What is the capital of France?", "expected": "Paris"},
    {"input": "What is the capital of Italy?", "expected": "Rome"},
    {"input": "What is the capital of Burkina Faso?", "expected": "Ouagadougou"},
]


async def ask(question: str) -> str:
    """Ask the model that runs on this machine. Any client of the OpenAI API works."""
    async with (
        EmbeddedServer("smollm2").open() as server,
        AsyncOpenAI(base_url=server.base_url, api_key=server.api_key) as client,
    ):
        answer = await client.chat.completions.create(
            model=server.model_name,
            messages=[
                {"role": "system", "content": "Answer in a few words."},
                {"role": "user", "content": question},
            ],
            max_tokens=40,
            temperature=0,
        )
        return answer.choices[0].message.content or ""


@eval_suite(data=QUESTIONS, scorers=[Contains()])
async def test_capitals(case: EvalCase) -> str:
    return await ask(case.input)
