"""Checkpoints in the local Hugging Face cache; nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

from vcr_core.errors import ComponentUnavailable


def cached_checkpoint(name: str, *, who: str, key: str, revision: str | None = None) -> Path:
    """Return the folder of a checkpoint in the local cache.

    Args:
        name: ``owner/name``.
        who: which component asks, for messages.
        key: the parameter that takes a folder instead, for messages.
        revision: branch, tag or commit; ``None`` = what the cache has as the main one.

    Raises:
        ComponentUnavailable: with what to do, if it is not there.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, revision=revision, local_files_only=True))
    except HFValidationError as error:
        raise ComponentUnavailable(f"{who}: {name!r} is no model name: {error}") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        shown = f"{name} (revision {revision})" if revision else name
        option = f" --revision {revision}" if revision else ""
        raise ComponentUnavailable(
            f"{who}: {shown} is not on this machine, and nothing is downloaded unasked. Fetch it "
            f"with 'hf download {name}{option}', or copy its folder here and set "
            f"{key} = '/path/to/folder'"
        ) from error
