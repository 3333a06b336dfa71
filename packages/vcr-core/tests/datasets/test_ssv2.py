from __future__ import annotations

import json

import pytest
from vcr_core.datasets.params import Ssv2Params
from vcr_core.datasets.ssv2 import Ssv2Dataset
from vcr_core.errors import ConfigError

LABELS = {
    "Pushing something so it spins": "1",
    "Approaching something with your camera": "0",
    "Bending something so that it deforms": "2",
}
ROWS = [
    {
        "id": "74225",
        "label": "spinning cube that quickly stops spinning",
        "template": "Pushing [something] so it spins",
        "placeholders": ["cube"],
    },
    {"id": "9", "label": "x", "template": "Approaching [something] with your camera"},
]


def make(root, **params):
    return Ssv2Dataset(Ssv2Params(root=str(root), **params))


@pytest.mark.parametrize("style", ["something-something-v2-{}.json", "labels/{}.json"])
def test_splits_and_templates(tmp_path, style):
    for name, data in (("labels", LABELS), ("validation", ROWS), ("train", ROWS[:1])):
        path = tmp_path / style.format(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(data))
    (tmp_path / "20bn-something-something-v2").mkdir()
    dataset = make(tmp_path)
    assert dataset.labels.names[0] == "Approaching something with your camera"
    assert dataset.ids() == ["74225", "9"]
    assert [dataset.item(i).label for i in dataset.ids()] == [1, 0]
    name = dataset.item("9").source.name
    assert name == str(tmp_path / "20bn-something-something-v2" / "9.webm")
    assert make(tmp_path, split="train").ids() == ["74225"]


def test_what_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"something-something-v2-labels\.json"):
        make(tmp_path)
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    for text, word in (
        ("{", r"validation\.json"),
        ("{}", "a list of videos"),
        ('[{"id": "1"}, 3]', r"(?s)entry 0.*entry 1"),
        ('[{"id": "1", "template": "Eating [x]"}]', "Eating x"),
        (json.dumps([ROWS[0], ROWS[0]]), "two videos"),
    ):
        (tmp_path / "validation.json").write_text(text)
        with pytest.raises(ConfigError, match=word):
            make(tmp_path)
    for text, word in (("[]", "template"), ('{"a": "1"}', r"0\.\.0"), ('{"a": "x"}', "template")):
        (tmp_path / "labels.json").write_text(text)
        with pytest.raises(ConfigError, match=word):
            make(tmp_path)
