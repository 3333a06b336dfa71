from __future__ import annotations

import json
import random

import pytest
from vcr_core import definitions, outcomes
from vcr_core.errors import StoreError
from vcr_core.manifest import read_manifest
from vcr_core.record_scan import scan_records
from vcr_core.records import read_records, record_files
from vcr_core.status import run_status
from vcr_core.summary import headline_facts, headline_rates, run_facts, summarize


def write(folder, *lines, name="part-0-0.jsonl"):
    path = folder / "records" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def line(**fields):
    return json.dumps({"schema": 1, **fields}).encode() + b"\n"


def test_rates_and_counts_are_those_of_the_full_reading(run_folder):
    found = run_status(run_folder)
    summary = summarize(read_manifest(run_folder), read_records(run_folder))
    headline = summary["headline"]["definitions"].values()
    assert found.rates == {name: summary["definitions"][name] for name in headline}
    assert found.errors == summary["errors"]["by_type"]
    assert {k: v for k, v in summary["counts"].items() if k in found.counts} == found.counts


@pytest.mark.parametrize("seed", range(20))
def test_every_headline_rate_is_that_of_the_full_reading(tmp_path, seed):
    draw = random.Random(seed)
    manifest = {"experiment": {
        "attack": {"name": "a"}, "defense": {"name": "d"}, "threat": {"targeted": seed % 2 == 0},
        "protocol": {"attacker_knows_defense": seed % 3 == 0},
    }}  # fmt: skip

    def corner():
        if draw.random() < 0.1:
            return {"pred": None, "abstained": True, "p_label": 0.1}
        return {"pred": draw.randrange(3), "top5": [1, 2], "rejected": draw.random() < 0.2}

    def record(number):
        status = draw.choice(["ok", "ok", "ok", "ineligible", "error", "skipped"])
        made = {
            "video": f"v{number}", "batch": number, "attempt": 1, "status": status,
            "label": draw.randrange(3), "target": draw.randrange(3),
            "clean": corner(), "clean_defended": draw.choice([corner(), [corner(), corner()]]),
            "attacked": corner(), "attacked_defended": [corner() for _ in range(seed % 3 + 1)],
            "metrics": {"psnr": {"value": 1.5, "per_frame": [1.0, None]}}, "notes": ["é"],
        }  # fmt: skip
        return {**made, "label_source": "clean-prediction"} if seed % 5 == 0 else made

    records = [record(number) for number in range(40)]
    write(tmp_path, *(line(**record) for record in records))
    scanned, whole = scan_records(record_files(tmp_path)).records, read_records(tmp_path)
    assert headline_facts(manifest, scanned) == headline_facts(manifest, whole)
    facts = run_facts(manifest, whole)
    assert facts == run_facts(manifest, scanned)
    assert headline_facts(manifest, whole) == facts & {"attack", "defense", "target"}
    for name in headline_rates(manifest, facts).values():
        pair = [
            definitions.evaluate(name, list(filter(outcomes.is_evaluated, side)))
            for side in (scanned, whole)
        ]
        assert pair[0] == pair[1]


def test_what_is_not_needed_is_not_kept(run_folder):
    (first, *_) = scan_records(record_files(run_folder)).records
    assert first["clean"] == {"pred": 0}
    assert not {"metrics", "cost", "perturbation"} & first.keys()


def test_the_last_attempt_counts_and_a_torn_line_does_not(tmp_path):
    write(
        tmp_path,
        line(video="a", batch=1, attempt=2, status="ok", t_end="2"),
        line(video="b", batch=0, attempt=1, status="ok"),
        line(video="a", batch=1, attempt=1, status="error", t_end="1"),
        b'{"schema": 1, "video": "c"}',
    )
    scan = scan_records(record_files(tmp_path))
    assert [(r["video"], r["status"]) for r in scan.records] == [("b", "ok"), ("a", "ok")]
    assert scan.ends == [["2", None, "1"]]


@pytest.mark.parametrize(
    "damage",
    [
        b'{"schema": 1, "video": "b", "metrics": {"x": NaN}}\n',
        b'{"schema": 1, "video": "b", "metrics": {"x": 1.}}\n',
        b'{"schema": 1, "video": "b", "trace": [1, 2}\n',
        b'{"schema": 1, "video": "b", "notes": ["\xff"]}\n',
        b'{"schema": 1, "video": "b"} trailing\n',
        b'{"schema": 1, "video": 3}\n',
        b'{"schema": 1}\n',
        b"[1]\n",
        b"\n",
        b'{"schema": 2, "video": "b"}\n',
        b'{"schema": 1.0, "video": "b"}\n',
        b'{"schema": "1", "video": "b"}\n',
    ],
)
def test_damage_gives_the_error_of_the_full_reading(tmp_path, damage):
    path = write(tmp_path, line(video="a"), damage, line(video="c"))
    with pytest.raises(StoreError) as whole:
        read_records(tmp_path)
    with pytest.raises(StoreError) as scanned:
        scan_records(record_files(tmp_path))
    assert str(scanned.value) == str(whole.value)
    assert f"{path}:2" in str(scanned.value)


@pytest.mark.parametrize(
    "odd",
    [
        b'{"video": "b", "status": "ok"}\n',
        b'{"schema": 1, "video": "b", "status": "ok", "clean": "?"}\n',
        b'{"schema": 1, "video": "b", "status": "ok", "seeds": {"a": 123456789012345678901}}\n',
        b'{"schema": 1, "video": "b", "status": "ok", "notes": ["\\ud800"]}\n',
        '{"schema": 1, "video": "b", "status": "ok", "notes": ["é"]}\n'.encode(),
        b' {"schema": 1, "video": "b", "status": "ok"}\r\n',
    ],
)
def test_odd_lines_that_are_records_stay_records(tmp_path, odd):
    write(tmp_path, line(video="a", status="ok"), odd)
    (_, whole) = read_records(tmp_path)
    assert whole == json.loads(odd)
    (_, scanned) = scan_records(record_files(tmp_path)).records
    assert (scanned["video"], scanned["status"]) == ("b", "ok")


def test_numbers_are_those_of_the_standard_library(tmp_path):
    draw = random.Random(0)
    numbers = [draw.uniform(-1, 1) * 10 ** draw.randint(-300, 300) for _ in range(2000)]
    numbers += [5e-324, 1.7976931348623157e308, 0.1, -0.0, 2**63, -(2**63), 2**53 + 1]
    write(tmp_path, line(video="a", numbers=numbers))
    (record,) = read_records(tmp_path)
    assert [repr(number) for number in record["numbers"]] == [repr(number) for number in numbers]
