"""JSON Schemas of run files and of component parameters, for editors and other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from vcr_core.components import params_type
from vcr_core.config.schema import DatasetKeys, RunFile

if TYPE_CHECKING:
    from vcr_core.plugins import Entry

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ORIGINS = {
    "dataset": "keys of the dataset's parameters are allowed too",
    "model": "name, and the model's parameters",
    "source": "name of the model that the attack is computed on, and its parameters; absent = the "
    "evaluated model",
    "attack": "name, and the attack's parameters",
    "defense": "name, and the defense's parameters; a chain is a list of such tables",
}


def run_file_schema() -> dict[str, Any]:
    """Return the schema of a run file; ``vcr config schema attack/ifgsm`` has the parameters."""
    schema = msgspec.json.schema(RunFile)
    definitions = schema["$defs"]
    properties = definitions["RunFile"]["properties"]
    dataset = msgspec.json.schema(DatasetKeys)["$defs"]["DatasetKeys"]
    properties["dataset"] = {
        **dataset,
        "additionalProperties": True,
        "description": _ORIGINS["dataset"],
    }
    for kind in ("model", "source", "attack"):
        properties[kind] = _component(kind)
    link = _component("defense")
    properties["defense"] = {"anyOf": [link, {"type": "array", "items": link}]}
    return _finished(schema, "A run file of vcr", "")


def params_schema(entry: Entry) -> dict[str, Any]:
    """Return the schema of a component's parameters.

    Raises:
        ComponentUnavailable: if the parameters cannot be imported.
    """
    struct = params_type(entry.spec)
    if struct is None:
        empty = {"type": "object", "properties": {}, "additionalProperties": False}
        return _finished(empty, f"{entry.kind} {entry.name}", entry.spec.summary)
    return _finished(msgspec.json.schema(struct), f"{entry.kind} {entry.name}", entry.spec.summary)


def _component(kind: str) -> dict[str, Any]:
    return {
        "description": _ORIGINS[kind],
        "anyOf": [
            {"type": "string", "description": "a reference"},
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        ],
    }


def _finished(schema: dict[str, Any], title: str, description: str) -> dict[str, Any]:
    head = {"$schema": DIALECT, "title": title}
    if description:
        head["description"] = description
    return {**head, **_with_fractions(schema)}


def _with_fractions(node: Any) -> Any:
    """Return a schema in which every number may also be a fraction such as ``"8/255"``."""
    if isinstance(node, list):
        return [_with_fractions(part) for part in node]
    if not isinstance(node, dict):
        return node
    inner = {key: _with_fractions(value) for key, value in node.items()}
    if node.get("type") != "number":
        return inner
    kept = {key: inner.pop(key) for key in ("description", "default") if key in inner}
    text = {"type": "string", "pattern": r"^\s*-?[0-9.eE+-]+\s*(/\s*[0-9.eE+-]+\s*)?$"}
    return {**kept, "anyOf": [inner, text]}
