"""Read the treatments of `--with`: additional files for subjects, to see whether they help.

Every subject runs without a treatment, which is the arm `none`, and with each treatment. The report compares them in
pairs.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bakeoff.errors import UsageError
from bakeoff.plan import SubjectSpec
from bakeoff.subjects.folder_changes import MAX_BYTES, MAX_FILES, PASSED_OVER, read_matching, read_tree

NONE = "none"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}")


def read_treatments(given: Sequence[str], *, single_files: bool = False) -> dict[str, dict[str, str]]:
    """Read the values of `--with` (NAME=DIR); return the texts of files by path for each name.

    Raises an error for unusable files. With `single_files`, a file may replace the folder.
    """
    found: dict[str, dict[str, str]] = {}
    for text in given:
        name, separator, place = text.partition("=")
        if not separator or not place or not _NAME.fullmatch(name):
            raise UsageError(
                f"--with {text!r:.200} is not written as NAME=DIR: for instance --with notes=./notes, where the name "
                "has letters, digits, dots and dashes"
            )
        if name == NONE:
            raise UsageError(f"--with {text!r:.200}: {NONE!r} is the arm without a treatment, which is always there")
        if name in found:
            raise UsageError(f"--with {text!r:.200}: there are two treatments {name!r}; rename one")
        found[name] = _files(text, Path(place), single=single_files)
    return found


def _files(text: str, place: Path, *, single: bool) -> dict[str, str]:
    if single and place.is_file():
        tree = read_matching(place.parent, [place.name])
    elif place.is_dir():
        _check_size(text, place)
        tree = read_tree(place)
    else:
        raise UsageError(f"--with {text!r:.200}: {str(place)!r} is not a folder{' or a file' if single else ''}")
    refused = [f"{name}: {why}" for name, why in tree.refused.items() if why != "is a folder"]
    if refused:
        raise UsageError(f"--with {text!r:.200}: {refused[0]}; use plain text files")
    if not any(content.strip() for content in tree.files.values()):
        skipped = ", ".join(sorted(tree.passed_over))
        besides = (
            f" besides {skipped}, which {'is' if len(tree.passed_over) == 1 else 'are'} skipped" if skipped else ""
        )
        raise UsageError(f"--with {text!r:.200}: {str(place)!r} has no file with a text{besides}")
    return dict(sorted(tree.files.items()))


def _check_size(text: str, place: Path) -> None:
    """Refuse a folder that is too large, such as `/`, as soon as the limit is passed."""
    entries, size = 0, 0
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if name not in PASSED_OVER]
        entries += len(folders) + len(files)
        for name in files[: MAX_FILES + 1]:
            with suppress(OSError):
                size += (Path(folder) / name).lstat().st_size
        if entries > MAX_FILES or size > MAX_BYTES:
            raise UsageError(
                f"--with {text!r:.200}: {str(place)!r} holds more than {MAX_FILES:,} files and folders, or more than "
                f"{MAX_BYTES // 1024**2} MB: name a folder that has only the files of the treatment"
            )


def crossed(specs: Iterable[SubjectSpec], option: str, treatments: Mapping[str, object]) -> list[SubjectSpec]:
    """Return each subject without a treatment, and once with each treatment.

    `option` is the option of the subject that takes a treatment, and `treatments` has its values by their names.
    """
    made: list[SubjectSpec] = []
    for spec in specs:
        made.append(spec)
        made += [
            spec.model_copy(
                update={
                    "name": f"{spec.name} with {name}",
                    "options": {**spec.options, option: value},
                    "base": spec.name,
                    "treatment": name,
                }
            )
            for name, value in treatments.items()
        ]
    return made


def treated_name(name: str, spec: SubjectSpec) -> str:
    """Return the name of an agent or model for result files, which have no field for a treatment."""
    return f"{name} with {spec.treatment}" if spec.treatment else name
