"""Turn the subjects of a configuration into those of a plan."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from bakeoff._kernel.imports import import_target, revision_of
from bakeoff._kernel.text import free_name
from bakeoff._kernel.yaml import PlacedYaml
from bakeoff.doors.data_files import read_text
from bakeoff.doors.eval.config import KINDS, OF_KINDS, SubjectEntry, path_in, printable
from bakeoff.errors import UsageError
from bakeoff.mcp.servers import is_http_address
from bakeoff.models.providers import parse_model_name
from bakeoff.plan import SubjectSpec
from bakeoff.subjects.command import CommandSubject, command_revision
from bakeoff.subjects.controls import ScriptedSubject

_SETTINGS = {*OF_KINDS["model"]} - {"system", "base_url", "key_variable", "mcp"}  # passed on as they are


def subject_specs(entries: Sequence[SubjectEntry], placed: PlacedYaml, problems: list[str]) -> tuple[SubjectSpec, ...]:
    """Return the subjects of a plan, each with a name of its own. Problems are added to a list."""
    specs: list[SubjectSpec] = []
    taken: set[str] = set()
    for at, entry in enumerate(entries):
        key = placed.known(("subjects", at))
        kind = next(name for name in KINDS if getattr(entry, name) is not None)
        foreign = {name for other, names in OF_KINDS.items() if other != kind for name in names}
        wrong = sorted(entry.model_fields_set & foreign)
        problems += [placed.problem((*key, name), f"has no meaning for a {kind}: remove it") for name in wrong]
        place = placed.known((*key, kind))
        try:
            spec = _spec(entry, kind, placed.file.parent)
        except UsageError as error:
            problems.append(placed.problem(place, str(error)))
            continue
        if spec.name in taken and entry.name is not None:
            problems.append(placed.problem((*key, "name"), f"{spec.name!r} is used twice: rename one"))
        elif spec.name in taken:
            what = f"{spec.name!r} is listed twice: remove one, or give it a `name` and settings of its own"
            problems.append(placed.problem(key, what))
        taken.add(name := free_name(spec.name, taken))
        specs.append(spec.model_copy(update={"name": name}))
    return tuple(specs)


def _spec(entry: SubjectEntry, kind: str, folder: Path) -> SubjectSpec:
    if kind == "model":
        return _model(entry, folder)
    if kind == "command":
        assert entry.command is not None
        options: dict[str, JsonValue] = {"argv": list(entry.command)}
        options |= entry.model_dump(include=set(OF_KINDS["command"]), exclude_defaults=True)
        if folder != Path():
            options["folder"] = str(folder)
        name = entry.name or " ".join(entry.command)
        revision = command_revision(entry.command, folder)
        spec = SubjectSpec(kind="command", name=printable(name), options=options, revision=revision)
        CommandSubject.from_spec(spec).check_program()  # the first raises for variables that are not set
        return spec
    if kind == "function":
        target = entry.function or ""
        revision, name = revision_of(import_target(target, "the subject")), printable(entry.name or target)
        return SubjectSpec(kind="function", name=name, options={"target": target}, revision=revision)
    if kind == "scripted":
        script: Any = entry.scripted
        if not isinstance(script, dict):
            script = {"default": script if isinstance(script, str) else str(script)}
        spec = SubjectSpec(kind="scripted", name=printable(entry.name or "scripted"), options=script)
        ScriptedSubject.from_spec(spec)  # raises for wrong options
        return spec
    assert entry.control is not None
    return SubjectSpec(kind=entry.control, name=printable(entry.name or entry.control))


def _model(entry: SubjectEntry, folder: Path) -> SubjectSpec:
    assert entry.model is not None
    name = parse_model_name(entry.model)
    options = entry.model_dump(mode="json", include=_SETTINGS, exclude_defaults=True)
    if entry.system is not None:
        path = path_in(entry.system)
        options["system"] = entry.system if path is None else read_text(folder / path).removesuffix("\n")
    if entry.base_url is not None:
        if not is_http_address(entry.base_url):
            raise UsageError(f"base_url: {entry.base_url!r} is not an address: write it as https://host/v1")
        provider = {"base_url": entry.base_url, "key_variable": entry.key_variable}
        options["providers"] = {name.provider: {key: value for key, value in provider.items() if value is not None}}
    elif entry.key_variable is not None:
        raise UsageError("key_variable is for a `base_url`: add one, or remove it")
    if entry.mcp:
        options["mcp"] = [server.model_dump(mode="json", exclude_defaults=True) for server in entry.mcp]
    elif entry.max_steps is not None:
        raise UsageError("max_steps is for a model with `mcp` servers: add some, or remove it")
    kind = "agent" if entry.mcp else "model"
    spec = SubjectSpec(kind=kind, name=printable(entry.name or entry.model), options={"model": entry.model, **options})
    from bakeoff.subjects.model import ModelSubject  # imports SDKs that take a second to load

    ModelSubject.from_spec(spec)  # raises for a provider that nobody knows, and variables that are not set
    return spec
