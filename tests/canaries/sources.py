"""The places that keys come from, each with a key of its own."""

import hashlib
import json
from dataclasses import dataclass


def key_of(source: str, prefix: str = "") -> str:
    """Return a key that looks random and is the same each time."""
    return f"{prefix}Cn7ry{hashlib.sha256(source.encode()).hexdigest()[:9]}X{len(source)}qZw8"


@dataclass(frozen=True, slots=True)
class Source:
    """A place that a key comes from.

    Attributes:
        name: What findings call it.
        planted: The text that is put there.
        key: The part of it that may not be readable.
    """

    name: str
    planted: str
    key: str


def _source(name: str, form: str = "{}", prefix: str = "") -> Source:
    key = key_of(name, prefix)
    return Source(name, form.format(key), key)


_ODD = "Cn7ry\"odd&<5>'\\q/w+8%s=d3?~x"

VARIABLES = {
    source.name: source
    for source in (
        _source("OPENAI_API_KEY", prefix="sk-"),
        _source("DATABASE_URL", "postgres://app:{}@db.example:5432/app"),
        _source("SENTRY_DSN", "https://{}@o1.ingest.example/42"),
        _source("SLACK_WEBHOOK_URL", "https://hooks.example/services/T0CN7RY3/B0AAAAAA/{}"),
        _source("HTTPS_PROXY", "http://me:{}@proxy.example:3128"),
        _source("SERVICE_JWT", "{}", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjbjdyeTUifQ."),
        _source("STRIPE_SK"),
        _source("SIGNINGKEY"),
        _source("SESSION_COOKIE"),
        _source("UNNAMED", prefix="ghp_"),
        Source("ODD_PASSWORD", _ODD, _ODD),
        Source("SERVICE_ACCOUNT", json.dumps({"private_key_id": key_of("account")}), key_of("account")),
    )
}
"""A variable of each kind."""

BOUNDED = ("OPENAI_API_KEY", "DATABASE_URL", "ABOVE_TOKEN")
"""The variables that the bounded form plants, beside what is special to a door."""

FILES = {
    "project/.env": _source("HERE_TOKEN"),
    "project/.env.local": _source("LOCAL_TOKEN"),
    ".env": _source("ABOVE_TOKEN"),
}
"""Files with variables, in the folder of the project and above it."""

LOGIN = _source("login file", '{{"access_token": "{}"}}')
"""A file in the home folder that agents are given."""

MCP = {
    source.name: source
    for source in (
        _source("server env"),
        _source("server env URL", "https://me:{}@db.example/x"),
        _source("server argument"),
        _source("server argument=", "--token={}"),
        _source("server argument URL", "https://me:{}@db.example/y"),
        _source("server bearer header", "Bearer {}"),
        _source("server header"),
        _source("server URL password", "me:{}@"),
        _source("server URL query", "?api_key={}"),
        _source("server variable"),
    )
}
"""Plant keys in what the configuration of a suite gives its servers and providers."""

HEADER = _source("--header", "Authorization: Bearer {}")
"""An option of commands that talk to servers."""

TOKEN = _source("token file")
"""A token that only one server gets, and that is read when it is needed."""

AGENT = _source("agent variable")
"""A variable that the file of an agent hands over to it."""

REQUEST = _source("header of a request", "Bearer {}")
"""Plant a key that only an application knows, and sends where its calls are recorded."""

CONTROL = _source("a text that is no secret")
"""A text that is repeated together with the keys. Where it is readable, a key would be."""
