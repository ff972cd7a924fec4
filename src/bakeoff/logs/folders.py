"""Look into folders of logs that may be hostile: links are not followed, so that nothing outside is read."""

from pathlib import Path


def child_folders(folder: Path) -> list[Path]:
    """Return the folders in a folder by name."""
    return sorted(each for each in folder.iterdir() if not each.is_symlink() and each.is_dir())


def file_in(folder: Path, *names: str) -> Path | None:
    """Return a file below a folder, or None if there is none or a link leads to it."""
    path = folder
    for name in names:
        path = path / name
        if path.is_symlink():
            return None
    return path if path.is_file() else None
