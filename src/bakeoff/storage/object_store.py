"""Read and write objects in the buckets of S3, Google Cloud Storage and Azure, through fsspec.

Every problem is a `StoreError` with one sentence, since the libraries raise dozens of classes. Keys
are relative to the address of the store.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from bakeoff.errors import RunFolderError, UsageError

SCHEMES = {"s3": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az"}  # scheme -> extra to install
_LIBRARIES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}
_ERRORS: Mapping[str, tuple[str, ...]] = {
    "s3": ("botocore.exceptions:BotoCoreError", "botocore.exceptions:ClientError"),
    "gs": ("gcsfs.retry:HttpError", "google.auth.exceptions:GoogleAuthError", "aiohttp:ClientError"),
    "az": ("azure.core.exceptions:AzureError", "aiohttp:ClientError"),
}
# Retries and timeouts, if the library has such settings. The run does not wait.
_SETTINGS: Mapping[str, dict[str, Any]] = {
    "s3": {
        "config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 2}},
        "max_concurrency": 1,  # with more, s3fs requests the size before each read
    },
    "gs": {},
    "az": {},
}


class StoreError(RunFolderError):
    """An object store refused a request or cannot be reached."""


@dataclass(frozen=True)
class ObjectStore:
    """The objects under one address."""

    address: str

    @property
    def _extra(self) -> str:
        return SCHEMES[self.address.partition(":")[0]]

    @cached_property
    def _files(self) -> Any:
        """Return fsspec's file system. Raise UsageError if its library is not installed."""
        library = _LIBRARIES[self._extra]
        try:
            import_module(library)
            fsspec = import_module("fsspec")
        except ImportError as error:
            raise UsageError(
                f"{self.address} needs {library}, which is not installed: pip install 'bakeoff[{self._extra}]'"
            ) from error
        settings = {"use_listings_cache": False, "skip_instance_cache": True, **_SETTINGS[self._extra]}
        with self._sentences():
            return fsspec.filesystem(self.address.partition(":")[0], **settings)

    @cached_property
    def _known_errors(self) -> tuple[type[Exception], ...]:
        found: list[type[Exception]] = [OSError, ValueError]  # as for a malformed endpoint
        for name in _ERRORS[self._extra]:
            module, _, attribute = name.partition(":")
            found.append(getattr(import_module(module), attribute))
        return tuple(found)

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except (FileExistsError, UsageError):
            raise
        except self._known_errors as error:
            why = " ".join(str(error).split())[:300] or type(error).__name__
            raise StoreError(
                f"{self.address} cannot be used: {why}; check the address, the keys in the environment and the network"
            ) from error

    def read(self, key: str) -> bytes | None:
        """Return the content of an object, or None if it does not exist."""
        with self._sentences():
            try:
                return bytes(self._files.cat_file(self._path(key)))
            except FileNotFoundError:
                return None

    def read_some(self, keys: list[str]) -> dict[str, bytes]:
        """Return the contents of several objects, read in parallel."""
        with self._sentences():
            found = self._files.cat([self._path(key) for key in keys])
        if not isinstance(found, dict):
            found = {self._path(keys[0]): found}
        return {key: bytes(found[self._path(key)]) for key in keys}

    def write(self, key: str, data: bytes) -> None:
        """Write an object, completely or not at all."""
        with self._sentences():
            self._files.pipe_file(self._path(key), data)

    def write_some(self, contents: Mapping[str, bytes]) -> None:
        """Write several objects in parallel."""
        with self._sentences():
            self._files.pipe({self._path(key): data for key, data in contents.items()})

    def create(self, key: str, data: bytes) -> bool:
        """Create an object. Return False if it exists. Of simultaneous writers, one succeeds."""
        with self._sentences():
            try:
                self._files.pipe_file(self._path(key), data, mode="create")
            except FileExistsError:
                return False
            except self._known_errors as error:
                if "PreconditionFailed" in str(error) or "At least one of the pre-conditions" in str(error):
                    return False
                raise
        return True

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the keys and sizes of all objects in a folder and its subfolders."""
        root = f"{self._path(prefix)}/"
        with self._sentences():
            try:
                found = self._files.find(root, detail=True)
            except FileNotFoundError:
                return {}
        return {f"{prefix}/{name.removeprefix(root)}": int(facts["size"] or 0) for name, facts in found.items()}

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the direct subfolders of a folder."""
        root = f"{self._path(prefix)}/"
        with self._sentences():
            try:
                found = self._files.ls(root, detail=True)
            except FileNotFoundError:
                found = []
            if not found and not self._files.exists(bucket := root.partition("/")[0]):
                raise StoreError(
                    f"{self.address} cannot be read: there is no bucket {bucket!r}, or it is not yours to see"
                )
        return sorted(one["name"].rstrip("/").rpartition("/")[2] for one in found if one["type"] == "directory")

    def _path(self, key: str) -> str:
        return f"{self.address.partition('://')[2]}/{key}".rstrip("/")
