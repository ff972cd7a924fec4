"""Decide which values are secret, by the names of variables and fields, and by their form."""

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from bakeoff._kernel.environment import environments_above, read_environment
from bakeoff.errors import UsageError
from bakeoff.storage.redaction.forms import SHORTEST

_SECRET_NAME = re.compile(
    r"apikey|privatekey|token|secret|password|passwd|passphrase|credential"
    r"|(^|[_.-])(keys?|pat|pass|auth)([_.-]|\d*$)|_pwd$",  # whole words: PATH and KEYBOARD_LAYOUT are not secret
    re.IGNORECASE,
)
# Names that are not always secret, so that the values must look like a key too.
_DOUBTFUL_NAME = re.compile(
    r"jwt|bearer|cookie|passcode|webhook|signature|connection_?string|conn_?str"
    r"|(^|[_.-])(sk|dsn|sas|pin|otp|totp|salt|seed|mnemonic|cert|pwd|hmac|session_?id|sid|csrf|xsrf)([_.-]|\d*$)"
    r"|(?<!mon)(?<!don)(?<!tur)(?<!hoc)(?<!joc)(?<!whis)(?<!hot)(?<!lac)(?<!mic)key\d*$",
    re.IGNORECASE,
)
_SETTING_NAME = re.compile(  # settings of a secret, not the secret itself
    r"_(type|mode|method|provider|enabled|disabled|file|path|dir|folder|sock|socket|length|size|ttl|timeout|expir\w+"
    r"|algorithm|host|port|region|layout|count|limit|name|prefix|suffix|format|version|required|parallelism)$",
    re.IGNORECASE,
)
_ORDINARY = frozenset(
    (
        *("true", "false", "enabled", "disabled", "required", "optional", "undefined", "none", "null", "default"),
        *("localhost", "production", "development", "staging", "testing", "anonymous", "keychain", "plaintext"),
    )
)
_PATH = re.compile(r"(?:~|\.{1,2})?/[^\n]*|[A-Za-z]:[\\/][^\n]*")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_KEY = re.compile(
    r"(?:sk|rk|pk|xai|pplx|gsk|tvly|fw|key|ak|r8|nvapi|dapi|whsec|shpat|sntrys|lin_api|glsa|rubygems|dop_v1|hvs)[-_]"
    r"[A-Za-z0-9_-]{16,}|(?:gh[pousr]|github_pat|hf|npm|pypi|glpat|xox[abeoprs]|xapp)[-_][A-Za-z0-9_-]{16,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|AGE-SECRET-KEY-1\w{40,}|\d{8,10}:AA[\w-]{30,}"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----")
_LONG_LINE = 32  # shortest line of a private key that is secret on its own
_MAX_SIZE = 100_000  # longest value that is searched

_SECRET_FIELD = re.compile(
    r"(?:proxy-)?authorization(?:_token)?|(?:x-)?api[_-]?key|(?:access|auth|refresh|bearer|api)[_-]?token|client[_-]?secret|password",
    re.IGNORECASE,
)  # narrower than for variables, since `key` or `token` may be ordinary in a URL
_SCHEME = re.compile(r"^(?:bearer|basic|token) +", re.IGNORECASE)  # passwords may contain spaces


def known_secrets(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the secrets in the environment and in `.env` files here and in parent folders."""
    with suppress(UsageError):  # no key was used from an unreadable file
        base = read_environment(base=base)
    found = secrets_in(os.environ if base is None else base)
    values = set(found.values())
    for number, variables in enumerate(environments_above(), start=1):
        for name, value in secrets_in(variables).items():
            if value not in values:
                found[f"{name}.above{number}"] = value
                values.add(value)
    return found


def secrets_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that are secret by name or value, and secrets inside their values.

    Secrets inside values are named with a suffix, such as `DATABASE_URL.password`.
    """
    return {part: secret for name, value in environment.items() if value for part, secret in _secrets_of(name, value)}


@lru_cache(maxsize=4096)
def _secrets_of(name: str, value: str) -> tuple[tuple[str, str], ...]:
    inside = tuple(_inside(name, value)) if SHORTEST <= len(value) <= _MAX_SIZE else ()
    named = bool(_SECRET_NAME.search(name)) and not is_ordinary(value)
    if _SETTING_NAME.search(name) or (named and _is_address(value)):
        named = False
    doubtful = not named and bool(_DOUBTFUL_NAME.search(name)) and not _is_address(value) and looks_random(value)
    return ((name, value), *inside) if named or doubtful or inside else ()


def _inside(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield secrets that are recognised by the form of a value, not by its name."""
    if _KEY.fullmatch(value.strip()):
        yield name, value.strip()
    elif _PRIVATE_KEY.search(value):
        lines = (line.strip() for line in re.split(r"\n|\\n", value))
        long = [line for line in lines if len(line) >= _LONG_LINE and "-----" not in line]
        yield from ((f"{name}.line{number}", line) for number, line in enumerate(long, start=1))
        yield name, value
    elif _URL.match(value):
        yield from _in_url(name, value)
    elif scheme := _SCHEME.match(value):
        token = value[scheme.end() :].strip()
        named = name.lower().endswith("authorization") or _SECRET_NAME.search(name)
        if looks_random(token) or (named and len(token) >= SHORTEST):
            yield f"{name}.token", token
            with suppress(ValueError):  # of `Basic`
                user, colon, password = base64.b64decode(token, validate=True).decode().partition(":")
                if colon and user.isprintable():
                    yield f"{name}.password", password
    elif value.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            yield from ((f"{name}.{field}", text) for field, text in _in_json(json.loads(value)))
    elif found := re.search(r"(?:password|pwd|accountkey|sharedaccesskey|secret)=([^;\s]{8,})", value, re.IGNORECASE):
        yield f"{name}.password", found[1]  # from a connection string


def _in_url(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield secrets in a URL: password, user name if it is a key, keys in query or path."""
    try:
        url = urlsplit(value)
        user, password = url.username or "", url.password or ""
    except ValueError:
        return
    if password:
        yield f"{name}.password", password
        yield f"{name}.password_decoded", unquote(password)
    if user and not password and (looks_random(user) or "dsn" in name.lower()):
        yield f"{name}.user", user
    for field, text in parse_qsl(url.query):
        if len(text) >= SHORTEST and (_SECRET_NAME.search(field) or field.lower() in ("sig", "signature", "code")):
            yield f"{name}.{field}", text
    if re.search("webhook|hook_url|callback", name, re.IGNORECASE) or "hook" in (url.hostname or ""):
        yield from ((f"{name}.path", part) for part in url.path.split("/") if looks_random(part))


def secrets_inside(name: str, value: str) -> dict[str, str]:
    """Return secrets inside a value, such as the password in a URL or the token in a header.

    Programs may print them without the rest of the value.
    """
    return {part: secret for part, secret in _secrets_of(name, value) if secret != value}


def _in_json(data: Any) -> Iterator[tuple[str, str]]:
    """Yield the secrets in a credentials file, such as that of a service account."""
    if isinstance(data, dict):
        for field, item in data.items():
            if isinstance(item, str):
                if len(item) >= SHORTEST and (_SECRET_NAME.search(field) or _PRIVATE_KEY.search(item)):
                    yield from _secrets_of(field, item)
            else:
                yield from _in_json(item)
    elif isinstance(data, list):
        for item in data:
            yield from _in_json(item)


def is_ordinary(value: str) -> bool:
    """Return True for values that are never secret: words of settings, and paths."""
    if value.lower() in _ORDINARY or not _PATH.fullmatch(value):
        return value.lower() in _ORDINARY
    if os.path.lexists(value) or re.search(r"\.[A-Za-z]{1,5}$|^[~.]", value):
        return True
    return not any(map(looks_random, value.split("/")))  # base64 can begin with a slash


def _is_address(value: str) -> bool:
    """Return True for a URL without a part that looks like a key."""
    return bool(_URL.fullmatch(value)) and not any(map(looks_random, re.split("[/?&=#]", value)))


def looks_random(value: str) -> bool:
    """Return True for a word of letters and digits that is too random to be ordinary."""
    if len(value) < SHORTEST or is_ordinary(value) or re.search(r"\s", value):
        return False
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    if kinds < 2 or re.fullmatch(r"[a-z.-]+[:.@_-]?v?[0-9.]+|[0-9.:TZ+_-]+|[A-Za-z]+(?:[A-Z][a-z]+)*", value):
        return False
    return len(value) >= 2 * SHORTEST or kinds == 3 or len(re.findall("[0-9]", value)) >= 3


def secrets_within(data: Any, place: str = "") -> dict[str, str]:
    """Return texts in JSON data whose field names mark them as secret, by path."""
    if isinstance(data, dict):
        found: dict[str, str] = {}
        for name, item in data.items():
            if isinstance(item, str) and _SECRET_FIELD.fullmatch(str(name)):
                found[f"{place}{name}"] = _SCHEME.sub("", item)
            else:
                found |= secrets_within(item, f"{place}{name}.")
        return found
    if isinstance(data, list):
        return {k: v for at, item in enumerate(data) for k, v in secrets_within(item, f"{place}{at}.").items()}
    return {}
