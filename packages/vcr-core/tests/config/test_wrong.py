"""Wrong configurations: what is said, at which key, with what is allowed and what is near."""

from __future__ import annotations

from pathlib import Path

import pytest
from vcr_core.config.resolve import resolve_run
from vcr_core.errors import (
    ComponentUnavailable,
    ConfigError,
    IncompatibleComponents,
    UsageError,
    VcrError,
)

HEAD = 'model = "net"\n'
ATTACK = HEAD + '[attack]\nname = "ifgsm"\n'
BLUR = HEAD + '[defense]\nname = "gaussian-blur"\n'

WRONG = {
    "unknown parameter": (
        ATTACK + "stepz = 3",
        [
            "demo.toml: attack.stepz: unknown key; did you mean 'steps'? "
            "(ifgsm takes: steps, step_size, momentum)"
        ],
    ),
    "parameter of a component without any": (
        HEAD + '[attack]\nname = "square"\nsteps = 3',
        ["attack.steps: unknown key (square takes no parameters)"],
    ),
    "unknown table": (
        HEAD + "[treat]\neps = 1",
        ["treat: unknown key; did you mean 'threat'?", "a run file takes: schema, seed, dataset"],
    ),
    "unknown key of a core table": (
        HEAD + "[threat]\nepsilon = 0.1",
        ["threat.epsilon: unknown key; did you mean 'eps'?", "[threat] takes: norm, eps"],
    ),
    "unknown key of the dataset": (
        HEAD + '[dataset]\nname = "folder"\nsplitt = "val"',
        ["dataset.splitt: unknown key; did you mean 'split'?", "folder takes: root, split"],
    ),
    "sweep table in a run": (
        HEAD + "[matrix]\nseed = [1]",
        ["matrix: belongs to a sweep", "vcr sweep"],
    ),
    "unknown model": (
        'model = "nett"',
        ["model.name: found 'nett'", "no model is called 'nett'", "did you mean 'net'?"],
    ),
    "no model": ("seed = 1", ["model.name: missing", "vcr list model", "net"]),
    "no name": (
        HEAD + "[attack]\nsteps = 3",
        ["attack.name: missing", "leave [attack] out", "vcr list attack"],
    ),
    "unknown weights": (
        'model = "net.larg"',
        ["model.name: found 'net.larg'", "did you mean 'large'?", "net.full, net.large, net.small"],
    ),
    "unknown preset": (
        HEAD + 'attack = "ifgsm.stron"',
        ["attack.name: found 'ifgsm.stron'", "did you mean 'strong'?", "ifgsm.strong"],
    ),
    "a broken preset": (
        HEAD + 'attack = "ifgsm.broken"',
        ["preset ifgsm.broken", "param: unknown key; did you mean 'params'?"],
    ),
    "another kind": (
        HEAD + 'attack = "jpeg"',
        ["attack.name: found 'jpeg'", "'jpeg' is a defense"],
    ),
    "not a reference": (
        HEAD + 'attack = "a/b/c/d"',
        ["attack.name: found 'a/b/c/d'", "write name, name.variant"],
    ),
    "name is a number": (
        HEAD + "[attack]\nname = 3",
        ["attack.name: found 3 (integer)", "allowed: a reference"],
    ),
    "attack is a number": (
        HEAD + "attack = 3",
        ["attack: found 3 (integer)", "allowed: a reference"],
    ),
    "model none": ('model = "none"', ["model: found 'none'", "every run has a model"]),
    "integer too small": (
        ATTACK + "steps = 0",
        ["attack.steps: found 0 (integer); allowed: integer >= 1"],
    ),
    "integer too big": (
        HEAD + '[attack]\nname = "pgd"\nsteps = 1001',
        ["attack.steps: found 1001 (integer); allowed: integer >= 1 and <= 1000"],
    ),
    "text for an integer": (
        ATTACK + 'steps = "many"',
        ["attack.steps: found 'many' (text)", "allowed: integer >= 1"],
    ),
    "number for an integer": (
        ATTACK + "steps = 2.5",
        ["attack.steps: found 2.5 (number)", "allowed: integer"],
    ),
    "boolean for an integer": (
        ATTACK + "steps = true",
        ["attack.steps: found true (boolean)", "allowed: integer"],
    ),
    "a word beside a number": (
        ATTACK + 'step_size = "atuo"',
        [
            "attack.step_size: found 'atuo' (text); allowed: number > 0 and <= 1 or 'auto'; "
            "did you mean 'auto'?"
        ],
    ),
    "a step in levels": (
        ATTACK + "step_size = 2",
        ["attack.step_size: found 2 (integer)", "did you mean '2/255'?"],
    ),
    "a word": (
        HEAD + '[attack]\nname = "pgd"\nloss = "cee"',
        ["attack.loss: found 'cee' (text); allowed: 'ce', 'dlr', 'margin'; did you mean 'ce'?"],
    ),
    "eps in levels": (
        ATTACK + "[threat]\neps = 8",
        ["threat.eps: found 8; allowed with norm 'linf': 0 to 1", "did you mean '8/255'?"],
    ),
    "eps in levels as text": (
        ATTACK + '[threat]\neps = "16"',
        ["threat.eps: found '16'", "did you mean '16/255'?"],
    ),
    "eps negative": (
        ATTACK + '[threat]\neps = "-1/255"',
        ["threat.eps: found '-1/255' (text); allowed: number >= 0"],
    ),
    "eps not finite": (ATTACK + "[threat]\neps = inf", ["threat.eps", "finite"]),
    "eps not a number": (
        ATTACK + "[threat]\neps = nan",
        ["threat.eps: found nan", "allowed: number >= 0"],
    ),
    "eps divided by zero": (
        ATTACK + '[threat]\neps = "8/0"',
        ["threat.eps: found '8/0' (text); allowed: number >= 0; write a fraction as '8/255'"],
    ),
    "norm": (
        ATTACK + '[threat]\nnorm = "linff"',
        ["threat.norm: found 'linff'", "'linf', 'none'", "did you mean 'linf'?"],
    ),
    "no radius for l2": (
        HEAD + 'attack = "cw"',
        ["threat.eps: missing", "norm 'l2' has no default radius"],
    ),
    "target": (
        ATTACK + '[threat]\ntarget = "leastlikely"',
        ["threat.target: found 'leastlikely'", "integer >= 0", "did you mean 'least-likely'?"],
    ),
    "frames": (ATTACK + "[threat]\nframes = [1, 1]", ["threat.frames: found [1, 1]", "each once"]),
    "no frames": (
        ATTACK + "[threat]\nframes = 0",
        ["threat.frames: found 0", "allowed: 1 or more"],
    ),
    "region": (
        ATTACK + "[threat]\nregion = [0.5, 0, 0.1, 1]",
        ["threat.region: found", "top < bottom"],
    ),
    "item of a list": (
        ATTACK + "[threat]\nregion = [0, 0, 1, 3]",
        ["threat.region[3]: found [0, 0, 1, 3] (list)", "number >= 0 and <= 1"],
    ),
    "radius per frame": (
        ATTACK + "[threat]\nper_frame_eps = [4]",
        ["threat.per_frame_eps[0]: found [4]", "number >= 0 and <= 1"],
    ),
    "limit": (
        HEAD + "[dataset]\nlimit = 0",
        ["dataset.limit: found 0 (integer); allowed: integer >= 1 or none"],
    ),
    "rule": (
        HEAD + '[dataset]\nrule = "hsah"',
        [
            "dataset.rule: found 'hsah'",
            "'hash', 'list', 'shuffle', 'stratified'",
            "did you mean 'hash'?",
        ],
    ),
    "a number where text is wanted": (
        HEAD + "[dataset]\nsubset = 2024",
        ["dataset.subset: found 2024 (integer)", "allowed: text or none", "in quotes it is text"],
    ),
    "stop": (
        ATTACK + '[protocol]\nstop = "first-success"',
        ["protocol.stop: found 'first-success'", "did you mean 'first_success'?"],
    ),
    "repeats": (
        HEAD + "[protocol]\neval_repeats = 0",
        ["protocol.eval_repeats: found 0", "integer >= 1"],
    ),
    "seed": ("seed = -1\n" + HEAD, ["seed: found -1 (integer); allowed: integer >= 0"]),
    "schema": ("schema = 2\n" + HEAD, ["schema: found 2 (integer); allowed: 1"]),
    "a table that is none": (HEAD + "threat = 3", ["threat: found 3 (integer); allowed: a table"]),
    "a rule over fields": (BLUR + "kernel = [2, 2]", ["defense: kernel: both sides must be odd"]),
    "a list too short": (BLUR + "kernel = [3]", ["defense.kernel: found [3] (list)", "list of 2"]),
    "in a chain": (
        HEAD + '[[defense]]\nname = "jpeg"\n[[defense]]\nname = "gaussian-blur"\nsigm = 1',
        ["defense.1.sigm: unknown key; did you mean 'sigma'?"],
    ),
    "missing parameter": (
        HEAD + '[attack]\nname = "bank"',
        ["attack.bank: missing; bank needs it", "allowed: text"],
    ),
    "unknown metric": (
        HEAD + '[metrics]\nnames = ["ssm"]',
        ["metrics.names: found 'ssm'", "no metric is called 'ssm'", "did you mean 'ssim'?"],
    ),
    "metric twice": (
        HEAD + '[metrics]\nnames = ["mse", "MSE"]',
        ["metrics.names: 'mse' is named twice"],
    ),
    "metrics as text": (
        HEAD + '[metrics]\nnames = "mse"',
        ["metrics.names: found 'mse' (text); allowed: list of text"],
    ),
    "parameters of another metric": (
        HEAD + '[metrics]\nnames = ["mse"]\n[metrics.params.ssim]\nwindow = 7',
        ["metrics.params.ssim: not in metrics.names", "metrics.names: mse"],
    ),
    "parameter of a metric": (
        HEAD + "[metrics.params.ssim]\nwindw = 7",
        ["metrics.params.ssim.windw: unknown key; did you mean 'window'?"],
    ),
    "executor": (
        HEAD + '[executor]\nname = "proces"',
        ["executor.name: found 'proces'", "did you mean 'process'?"],
    ),
    "deterministic": (
        HEAD + '[runtime]\ndeterministic = "wran"',
        ["runtime.deterministic: found 'wran'", "did you mean 'warn'?"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(folder: Path, name: str) -> None:
    text, says = WRONG[name]
    (folder / "demo.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        resolve_run("demo.toml")
    [problem] = caught.value.problems
    assert problem.startswith(("demo.toml: ", "preset ")) or "missing" in problem
    for part in says:
        assert part in problem, problem
    assert caught.value.exit_code == 2


def test_there_are_enough_of_them() -> None:
    assert len(WRONG) >= 30


def test_all_problems_of_all_sections_at_once(folder: Path) -> None:
    (folder / "vcr.toml").write_text("[runtime]\nthreads = -1\n[seed]\n")
    (folder / "demo.toml").write_text(
        'model = "nett"\n[attack]\nname="ifgsm"\nstepz=1\nsteps=0\n[threat]\neps=8\nnorm="x"\n'
        '[dataset]\nlimit="all"\n'
    )
    with pytest.raises(ConfigError) as caught:
        resolve_run("demo.toml", overrides=["protocol.eot=0", "nonsense", "foo.bar=1"])
    text = str(caught.value)
    for key in ("model.name", "attack.stepz", "attack.steps", "threat.eps", "threat.norm",
                "dataset.limit", "protocol.eot", "'nonsense'", "foo.bar", "runtime.threads",
                "seed: not allowed"):  # fmt: skip
        assert key in text
    assert len(caught.value.problems) == 11
    assert "--set: protocol.eot: found 0" in text
    assert "vcr.toml: runtime.threads: found -1" in text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("model = \n", "demo.toml:1:9: not valid TOML"),
        ("a = 1\n[attack\n", "demo.toml:2:8: not valid TOML"),
        ("a = 1\na = 2\n", "demo.toml:2:6: not valid TOML"),
        ("a = [1,", "demo.toml:1:8: not valid TOML"),
    ],
)
def test_syntax_errors_have_a_line_and_a_column(folder: Path, text: str, place: str) -> None:
    (folder / "demo.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        resolve_run("demo.toml")
    assert str(caught.value).startswith(place)


def test_a_file_that_is_no_text(folder: Path) -> None:
    (folder / "demo.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"demo\.toml: not a text file in UTF-8"):
        resolve_run("demo.toml")


def test_neither_file_nor_preset() -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_run("quik")
    for part in ("quik: no such file", "did you mean 'quick'?", "paper/table2"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("attack.stepz=1", "--set: attack.stepz: unknown key; did you mean 'steps'?"),
        ("steps=1", "--set: steps: unknown key"),
        ("attack.steps", "--set: found 'attack.steps'; allowed: key=value"),
        ("a b=1", "'a b' is not a key path"),
        ("=1", "is not a key path"),
        ("threat=3", "--set: threat: found 3 (integer); allowed: a table"),
        ("threat.eps.x=3", "--set: threat.eps: found {'x': 3} (table); allowed: number >= 0"),
        ("defense.sigma=1", "the run has no defense"),
    ],
)
def test_wrong_overrides(override: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_run({"model": "net", "attack": "ifgsm"}, overrides=[override])
    assert says in str(caught.value)


MISFITS = {
    "label spaces": ({"model": "kinetics-net"}, ["'kinetics400'", "'motion8'", "net, opaque"]),
    "norm": (
        {"model": "net", "attack": "ifgsm", "threat": {"norm": "l2", "eps": 1}},
        ["threat.norm: found 'l2'", "allowed: 'linf'"],
    ),
    "norm of an attack without one": (
        {"model": "net", "attack": "stadv", "threat": {"norm": "linf"}},
        ["threat.norm: found 'linf'", "allowed: 'none'"],
    ),
    "targeted": (
        {"model": "net", "attack": "square", "threat": {"targeted": True}},
        ["threat.targeted: found true", "square has no targeted mode"],
    ),
    "untargeted": (
        {"model": "net", "attack": "hit"},
        ["threat.targeted: found false", "allowed: true"],
    ),
    "target": (
        {"model": "net", "attack": "ifgsm", "threat": {"targeted": True, "target": 8}},
        ["threat.target: found 8; allowed: 0 to 7"],
    ),
    "no gradient of the model": (
        {"model": "opaque", "attack": "ifgsm"},
        ["attack.name: ifgsm needs gradients", "such as square"],
    ),
    "no gradient of the defense": (
        {"model": "net", "attack": "ifgsm", "defense": "purifier"},
        ["defense purifier gives no gradient", "protocol.attacker_knows_defense = false"],
    ),
    "exact gradient": (
        {"model": "net", "attack": "ifgsm", "defense": "jpeg", "protocol": {"gradient": "exact"}},
        ["protocol.gradient: found 'exact'", "'auto' or 'surrogate'"],
    ),
    "no gradient asked": (
        {"model": "net", "attack": "ifgsm", "defense": "jpeg", "protocol": {"gradient": "none"}},
        ["protocol.gradient: found 'none'", "attacker_knows_defense = false"],
    ),
    "frames of a source attack": (
        {"model": "net", "attack": "codec", "threat": {"frames": 3}},
        ["threat.frames", "source", "leave the key out"],
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_impossible_combinations(name: str) -> None:
    document, says = MISFITS[name]
    with pytest.raises(IncompatibleComponents) as caught:
        resolve_run(document)
    for part in says:
        assert part in str(caught.value), str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "document",
    [
        {"model": "net", "attack": "ifgsm", "defense": "purifier",
         "protocol": {"attacker_knows_defense": False}},
        {"model": "net", "attack": "square", "defense": "purifier"},
        {"model": "opaque", "attack": "square"},
        {"model": "kinetics-net", "dataset": "folder"},
        {
            "model": "net",
            "attack": "ifgsm",
            "defense": "jpeg",
            "protocol": {"gradient": "surrogate"},
        },
        {"model": "net", "attack": "pgd", "threat": {"norm": "l2", "eps": 3}},
    ],
)  # fmt: skip
def test_possible_combinations(document: dict[str, object]) -> None:
    assert resolve_run(document).experiment.model.spec.name


def test_a_missing_requirement_has_its_own_exit_code() -> None:
    with pytest.raises(
        ComponentUnavailable, match=r"model heavy\.small.*vcr-fake\[heavy\]"
    ) as caught:
        resolve_run({"model": "heavy"})
    assert caught.value.exit_code == 3
    assert resolve_run({"model": "heavy"}, require_available=False).experiment


def test_a_broken_params_module_is_unavailable_not_a_crash(use_registry, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    import sys

    monkeypatch.setitem(sys.modules, "vcr_fake.params", None)
    with pytest.raises(VcrError) as caught:
        resolve_run({"model": "net", "attack": "ifgsm"})
    assert caught.value.exit_code == 3
    assert "attack 'ifgsm' of vcr-fake 1.2.3 is not available" in str(caught.value)
