"""Sign a run, so that others can notice any change to it.

`signature.json` lists the SHA-256 of every file of the run, with an Ed25519 signature of the list.
The public key in it only shows that the files fit together. To know who signed, a reader needs the
public key from another source.
"""

import base64
import binascii
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from bakeoff._kernel.files import PRIVATE, open_file, os_errors_explained, read_file, write_atomically
from bakeoff._kernel.model import FrozenModel, first_problem
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.storage.journal import hold_journal
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.repair import ASIDE
from bakeoff.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_FOLDERS = ("blobs", "pictures")
_MAX_KEY_SIZE = 64 * 1024
_CHUNK = 1 << 20


class Signature(FrozenModel):
    """The content of `signature.json`."""

    v: int = Field(default=1, ge=1, le=1)
    algorithm: str = Field(default="ed25519", pattern="^ed25519$")
    time: float
    public_key: str  # in base64, 32 bytes
    files: dict[str, str]  # the SHA-256 of each file, by its path in the folder
    signature: str = ""  # in base64, over everything else

    def signed(self) -> bytes:
        """Return the bytes to sign."""
        data = self.model_dump(mode="json", exclude={"signature"})
        return b"bakeoff run signature\n" + json.dumps(data, sort_keys=True, separators=(",", ":")).encode()

    @property
    def public_bytes(self) -> bytes:
        """Return the signer's public key, 32 bytes. Only readers who know the key can trust it."""
        return _decoded(self.public_key)

    @property
    def key_id(self) -> str:
        """Return the beginning of the public key's SHA-256, for people to compare."""
        return key_id(self.public_bytes)


def key_id(public_key: bytes) -> str:
    """Return the beginning of the SHA-256 of a public key."""
    return hashlib.sha256(public_key).hexdigest()[:16]


def sign_run(folder: RunFolder, key: "Ed25519PrivateKey") -> Signature:
    """Sign a finished run. Raise RunFolderError if it is being written or is damaged."""
    folder.read_plan()
    if not folder.started:
        raise RunFolderError(f"run {folder.label} has no journal: there is nothing to sign")
    if any(isinstance(entry, Damage) for entry in folder.entries()):
        raise RunFolderError(f"run {folder.label} is damaged: repair it first with `bakeoff runs check --repair`")
    with hold_journal(folder.journal_file):
        public = key.public_key().public_bytes_raw()
        public_key, files = base64.b64encode(public).decode(), dict(_digests(folder))
        unsigned = Signature(time=time.time(), public_key=public_key, files=files)
        signature = base64.b64encode(key.sign(unsigned.signed())).decode()
        signed = unsigned.model_copy(update={"signature": signature})
        write_atomically(folder.signature_file, signed.model_dump_json(indent=1).encode())
    return signed


def read_signature(folder: RunFolder) -> Signature | None:
    """Return the signature of a run, or None. Raise RunFolderError if it is damaged."""
    path = folder.signature_file
    if not path.exists():
        return None
    with os_errors_explained(path, "read"):
        data = read_file(path)
    try:
        return Signature.model_validate_json(data)
    except ValidationError as error:
        raise RunFolderError(f"{path} is no signature: {first_problem(error)}") from error


def changes_since(folder: RunFolder, signed: Signature) -> Iterator[str]:
    """Yield every difference between the files of a run and the signed ones."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(signed.public_bytes).verify(_decoded(signed.signature), signed.signed())
    except (InvalidSignature, ValueError):
        yield f"{folder.signature_file.name} itself was changed: its signature does not fit its content"
        return
    found = dict(_digests(folder))
    for name in sorted(found.keys() | signed.files.keys()):
        if name not in found:
            yield f"{name} was removed"
        elif name not in signed.files:
            yield f"{name} was added"
        elif found[name] != signed.files[name]:
            yield f"{name} was changed"


def _digests(folder: RunFolder) -> Iterator[tuple[str, str]]:
    """Yield the digest of every file of the run, without computed files such as pages."""
    own = (folder.plan_file, folder.journal_file, folder.seal_file, folder.labels_file, folder.path / ASIDE)
    for path in (*own, *(file for name in _FOLDERS for file in _files_in(folder.path / name))):
        if path.is_symlink() or path.exists():
            yield path.relative_to(folder.path).as_posix(), _digest(path)


def _files_in(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        yield from (Path(place, name) for name in sorted([*files, *links]))


def _digest(path: Path) -> str:
    if stat.S_ISLNK(path.lstat().st_mode):
        return "link to " + str(path.readlink())
    digest = hashlib.sha256()
    try:
        with open_file(path) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return digest.hexdigest()


# --- keys -----------------------------------------------------------------------------------------------------------


def make_key(path: Path) -> "Ed25519PrivateKey":
    """Make a new key pair, and return the private key.

    The private key is written to `path`, readable only by the owner, and the public key beside it.
    Raise `UsageError` if a file exists or cannot be written.
    """
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = public_file(path)
    for taken in (path, public):
        if taken.is_symlink() or taken.exists():
            raise UsageError(f"{taken} exists already: name another file, or leave out --new-key to sign with it")
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    with os_errors_explained(path, "written", kind=UsageError):
        write_atomically(path, private, PRIVATE)
        pem = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        write_atomically(public, pem, 0o644)
    return key


def public_file(path: Path) -> Path:
    """Return the path of the public key for a private key."""
    return path.with_name(f"{path.name}.pub")


def read_private_key(path: Path) -> "Ed25519PrivateKey":
    """Read a private key without password. Raise UsageError if others can read the file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = _loaded(path, lambda data: load_pem_private_key(data, None), f"make one with `--new-key --key {path}`")
    if path.stat().st_mode & 0o077:
        raise UsageError(f"{path} is a private key and others can read it: `chmod 600 {path}`")
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{path} is no Ed25519 private key")
    return key


def read_public_key(path: Path) -> bytes:
    """Read a public key, or derive it from a private key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = _loaded(path, load_pem_public_key, "name the .pub file that `bakeoff runs sign --new-key` made")
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{path} is no Ed25519 public key")
    return key.public_bytes_raw()


def _loaded(path: Path, load: Any, way_out: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with os_errors_explained(path, "read", hint=way_out, kind=UsageError):
            return load(read_file(path, _MAX_KEY_SIZE, pipes=True))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{path} is not a key that can be used here: {way_out}") from error


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
