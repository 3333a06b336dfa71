"""A classifier of the user's that a function in a Python file returns."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.errors import ComponentUnavailable, ConfigError, VcrError
from vcr_core.protocols import VideoClassifier

if TYPE_CHECKING:
    from vcr_core.specs import WeightSpec

    from vcr_models.files.params import PythonFileParams


def build(params: PythonFileParams, weights: WeightSpec) -> VideoClassifier:
    """Run the file and call its function.

    The folder of the file is where its own imports are looked for as well.

    Raises:
        ConfigError: if there is no such function.
        ComponentUnavailable: if the file or the function fails, or returns something else.
    """
    path = Path(weights.file).absolute()
    name = f"vcr_python_file_{weights.sha256[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"model.file: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
        function = getattr(module, params.function, None)
        if not callable(function):
            known = [n for n, v in vars(module).items() if callable(v) and v.__module__ == name]
            raise ConfigError(
                f"model.function: {path} has no function {params.function!r}; it has "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        made = function(**params.arguments)
    except VcrError:
        raise
    # Somebody else's code runs here; whatever it raises is what the message says.
    except Exception as error:
        raise ComponentUnavailable(
            f"{path}: {params.function} failed: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    if not isinstance(made, VideoClassifier):
        raise ComponentUnavailable(
            f"{path}: {params.function} returned {type(made).__name__}; it must return a "
            "classifier: wrap a module with vcr_core.as_classifier"
        )
    return made
