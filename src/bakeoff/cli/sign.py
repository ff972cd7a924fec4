"""Carry out `bakeoff runs sign` and `bakeoff runs verify`."""

from pathlib import Path

from rich.text import Text

from bakeoff._kernel.text import count_of
from bakeoff.cli.console import out, print_json, say
from bakeoff.errors import RunFolderError
from bakeoff.report.formatting import visible
from bakeoff.storage.run_folder import find_run
from bakeoff.storage.signature import (
    changes_since,
    key_id,
    make_key,
    public_file,
    read_private_key,
    read_public_key,
    read_signature,
    sign_run,
)

_SHOWN = 20


def run_sign(*, run: str, results: Path, key: Path, new_key: bool) -> None:
    """Sign a run with a key, or with a new one."""
    folder = find_run(results, run)
    if new_key:
        private = make_key(key)
        say(f"made {key}, which stays with you, and {public_file(key)}, which others need to verify")
    else:
        private = read_private_key(key)
    signed = sign_run(folder, private)
    where = folder.signature_file.name
    files = count_of(len(signed.files), "file")
    out().print(Text(f"signed {folder.label}: {files} with key {signed.key_id} in {where}"))


def run_verify(*, run: str, results: Path, key: Path | None, as_json: bool) -> int:
    """Verify the signature of a run; return 1 if a file was changed, added or removed, or another key signed it."""
    folder = find_run(results, run)
    signed = read_signature(folder)
    if signed is None:
        raise RunFolderError(f"run {folder.label} is not signed: `bakeoff runs sign {folder.label} --key FILE` does it")
    problems = list(changes_since(folder, signed))
    wanted = read_public_key(key) if key is not None else None
    trusted = wanted is not None and wanted == signed.public_bytes
    if wanted is not None and not trusted:
        problems.insert(0, f"it was signed with key {signed.key_id}, and {key} is key {key_id(wanted)}")
    if as_json:
        print_json({"run": folder.name, "key": signed.key_id, "trusted": trusted, "problems": problems})
        return int(bool(problems))
    console = out()
    for problem in problems[:_SHOWN]:
        console.print(Text(f"  {visible(problem)}"))
    if len(problems) > _SHOWN:
        console.print(f"  … and {len(problems) - _SHOWN:,} more")
    if problems:
        console.print(Text(f"{folder.label}: this is not the run that was signed, or not by that key"))
    elif trusted:
        console.print(Text(f"{folder.label}: signed with {key}, and nothing has changed since"))
    else:
        console.print(Text(f"{folder.label}: nothing has changed since key {signed.key_id} signed it"))
        say("anyone can sign with a key of their own: name the key that you trust with --key, to know who signed it")
    return int(bool(problems))
