"""Calls that an application makes through the SDKs of providers, each by one function."""

import asyncio
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
from google import genai
from google.genai.types import HttpOptions

from ..models.loopback import KEY

FOLDER = Path("../recordings")
"""The folder of the fixture `replay`, as the tests see it: they begin in an empty folder beside it."""


def recordings() -> list[Path]:
    """List the recordings that were written so far."""
    return sorted(FOLDER.rglob("*.json"))


QUESTION: Any = [{"role": "user", "content": "Capital of France?"}]


def ask_openai(url: str) -> str:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        return client.chat.completions.create(model="m", messages=QUESTION).choices[0].message.content or ""


def ask_openai_responses(url: str) -> str:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        return client.responses.create(model="m", input="Capital of France?").output_text


def stream_openai(url: str) -> str:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        chunks = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        return "|".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def ask_anthropic(url: str) -> str:
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        message = client.messages.create(model="m", max_tokens=9, messages=QUESTION)
        return message.content[0].text if message.content[0].type == "text" else ""


def stream_anthropic(url: str) -> str:
    with (
        anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=QUESTION) as stream,
    ):
        return "|".join(stream.text_stream)


def ask_google(url: str) -> str:
    with genai.Client(api_key=KEY, http_options=HttpOptions(base_url=url)) as client:
        return client.models.generate_content(model="m", contents="Capital of France?").text or ""


def stream_google(url: str) -> str:
    with genai.Client(api_key=KEY, http_options=HttpOptions(base_url=url)) as client:
        return "|".join(c.text or "" for c in client.models.generate_content_stream(model="m", contents="Capital?"))


def ask_openai_async(url: str) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
            answer = await client.chat.completions.create(model="m", messages=QUESTION)
        return answer.choices[0].message.content or ""

    return asyncio.run(ask())


def stream_openai_async(url: str) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
            chunks = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
            return "|".join([chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices])

    return asyncio.run(ask())


def stream_anthropic_async(url: str) -> str:
    async def ask() -> str:
        async with (
            anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client,
            client.messages.stream(model="m", max_tokens=9, messages=QUESTION) as stream,
        ):
            return "|".join([text async for text in stream.text_stream])

    return asyncio.run(ask())


def ask_google_async(url: str) -> str:
    async def ask() -> str:
        async with httpx.AsyncClient() as wire:
            client = genai.Client(api_key=KEY, http_options=HttpOptions(base_url=url, httpx_async_client=wire))
            answer = await client.aio.models.generate_content(model="m", contents="Capital of France?")
            client.close()
        return answer.text or ""

    return asyncio.run(ask())


WAYS = [
    ask_openai,
    ask_openai_responses,
    stream_openai,
    ask_anthropic,
    stream_anthropic,
    ask_google,
    stream_google,
    ask_openai_async,
    stream_openai_async,
    stream_anthropic_async,
    ask_google_async,
]
