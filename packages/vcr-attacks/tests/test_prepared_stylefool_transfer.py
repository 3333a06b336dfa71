"""StyleFool's style transfer: colours, features, statistics, optimisation, consistency."""

from __future__ import annotations

import hashlib
import math

import pytest
import torch
import torch.nn.functional as F
from vcr_attacks import stylefool_features
from vcr_attacks.params.prepared import StylefoolParams
from vcr_attacks.stylefool_bank import style_pictures
from vcr_attacks.stylefool_colours import cone_points, distances, hsv, theme
from vcr_attacks.stylefool_features import Filters, Vgg19, gram, vgg19_file
from vcr_attacks.stylefool_transfer import Gatys, motion, statistics_matched
from vcr_core.errors import ComponentUnavailable


def pictures(*names):
    from importlib.resources import files

    order = sorted(p.name for p in (files("vcr_attacks") / "styles").iterdir())
    bundled = style_pictures("bundled")
    return [bundled[order.index(f"{name}.png")] / 255 for name in names]


def few(**more):
    return StylefoolParams(**{"features": "filters", "first_steps": 15, "next_steps": 5, **more})


@pytest.mark.golden
def test_places_in_the_cone():
    red, black, white, cyan = torch.tensor([[1.0, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1]])
    height = 100 * math.cos(math.radians(30))
    expected = torch.tensor([[50.0, 0, 0], [0, 0, height], [0, 0, 0], [-50, 0, 0]])
    torch.testing.assert_close(
        cone_points(torch.stack([red, black, white, cyan])), expected, rtol=0, atol=1e-4
    )

    def apart(one, other):
        return float(distances(one.expand(3, 3), other.expand(1, 3, 3))) / 3

    assert apart(red, black) == pytest.approx(100, abs=1e-3)
    assert apart(red, cyan) == pytest.approx(100, abs=1e-3)
    assert apart(white, black) == pytest.approx(86.603, abs=1e-3)
    assert apart(red, red) == 0


def test_hue_is_that_of_the_standard_library_and_greys_have_none():
    import colorsys

    colours = torch.rand(50, 3, generator=torch.Generator().manual_seed(0))
    hue, saturation, value = hsv(colours)
    for i, colour in enumerate(colours.tolist()):
        h, s, v = colorsys.rgb_to_hsv(*colour)
        assert float(hue[i]) == pytest.approx(h * 2 * math.pi, abs=1e-5)
        assert float(saturation[i]) == pytest.approx(s, abs=1e-6)
        assert float(value[i]) == pytest.approx(v, abs=1e-6)
    grey = torch.full((3, 3), 0.5)
    assert float(distances(grey, grey.unsqueeze(0))) == 0
    assert hsv(grey)[0].tolist() == [0, 0, 0]


def test_a_theme_lists_the_most_frequent_colours_first():
    colours = torch.tensor([[0.9, 0.1, 0.1], [0.1, 0.8, 0.2], [0.2, 0.2, 0.9]])
    counts = [50, 30, 20]
    pixels = torch.cat([c.expand(n, 3) for c, n in zip(colours, counts, strict=True)])
    picture = pixels[torch.randperm(100, generator=torch.Generator().manual_seed(0))]
    found = theme(picture.T.reshape(1, 3, 10, 10))
    torch.testing.assert_close(found, colours)
    flat = torch.full((2, 3, 5, 5), 0.25)
    torch.testing.assert_close(theme(flat), torch.full((3, 3), 0.25))
    assert theme(torch.rand(1, 3, 90, 130)).shape == (3, 3)


def test_gram_of_a_constant_map_is_the_outer_product_over_channels():
    means = torch.tensor([1.0, -2.0, 3.0])
    maps = means.view(1, 3, 1, 1).expand(1, 3, 4, 5)
    torch.testing.assert_close(gram(maps)[0], torch.outer(means, means) / 3)


def test_statistics_are_those_of_the_style(videos):
    video, style = 0.25 + videos(4, 3, 9, 7) / 2, 0.4 + 0.2 * videos(3, 8, 8, seed=3)
    video[:, 1] = video[:, 1] * 0.5
    found = statistics_matched(video, style)
    for channel in range(3):
        assert float(found[:, channel].mean()) == pytest.approx(
            float(style[channel].mean()), abs=1e-5
        )
        assert float(found[:, channel].std(correction=0)) == pytest.approx(
            float(style[channel].std(correction=0)), abs=1e-5
        )
    flat = torch.full((2, 3, 4, 4), 0.5)
    assert torch.isfinite(statistics_matched(flat, style)).all()
    bright = statistics_matched(video, torch.ones(3, 4, 4))
    assert bright.max() <= 1


@pytest.mark.parametrize("optimiser", ["adam", "lbfgs"])
def test_a_style_changes_grams_and_keeps_content(optimiser):
    content, style = pictures("tiles", "waves")
    video = F.interpolate(content[None], (32, 40), mode="area").expand(1, 3, 32, 40)
    features = Filters()
    params = few(optimiser=optimiser, first_steps=25)
    found = Gatys(params, features)(video, style)
    assert found.shape == video.shape
    assert 0 <= float(found.min()) <= float(found.max()) <= 1

    def apart(one, other):
        pairs = zip(features(one)[0], features(other)[0], strict=False)
        return float(sum(F.mse_loss(gram(a), gram(b)) for a, b in pairs))

    assert apart(found, style[None]) < 0.5 * apart(video, style[None])
    kept = F.mse_loss(features(found)[1], features(video)[1])
    assert kept < F.mse_loss(features(style[None, :, :32, :40])[1], features(video)[1])


def test_its_own_style_leaves_a_frame_as_it_is():
    (picture,) = pictures("rings")
    frame = picture[None, :, :40, :32]
    found = Gatys(few(smoothness=0.0), Filters())(frame, frame[0])
    torch.testing.assert_close(found, frame, rtol=0, atol=1e-6)


def test_it_draws_nothing_and_does_not_touch_its_input():
    content, style = pictures("tiles", "waves")
    video = content[:, :32, :32].expand(2, 3, 32, 32).clone()
    before, state = video.clone(), torch.get_rng_state()
    first, second = (Gatys(few(), Filters())(video, style) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(video, before)
    assert torch.equal(torch.get_rng_state(), state)


def test_motion_is_found_and_believed_where_it_explains_the_frame():
    (picture,) = pictures("pebbles")
    moved = torch.stack([picture[:, 8:56, 8:56], picture[:, 8:56, 6:54]])
    places, believed = motion(moved, 4)
    inner = places[0][16:32, 16:32]
    rows, columns = torch.arange(16, 32).view(-1, 1), torch.arange(16, 32)
    assert torch.equal(inner, rows * 48 + columns - 2)
    assert believed[0][0, 8:40, 8:40].all()
    cut = torch.stack([picture[:, :48, :48], 1 - picture[:, :48, :48]])
    assert motion(cut, 4)[1][0].mean() < 0.5
    assert motion(moved[:1], 4) == ([], [])
    still, _ = motion(moved, 0)
    assert torch.equal(still[0].flatten(), torch.arange(48 * 48))


def test_consistency_makes_frames_alike():
    content, style = pictures("clouds", "mosaic")
    noise = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    video = (content[:, :32, :32] + 0.02 * noise).clamp(0, 1)

    def unrest(weight):
        found = Gatys(few(temporal_weight=weight, smoothness=0.0), Filters())(video, style)
        return float(found.diff(dim=0).square().mean())

    assert unrest(1e3) < 0.5 * unrest(0.0)


class TestVgg19:
    """With weights of its own in a file of the right name and, for the test, the right hash."""

    WIDTHS = (64, 64, 128, 128, *[256] * 4, *[512] * 5)

    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        state, before = {}, 3
        draw = torch.Generator().manual_seed(0)
        places = [at for stage in stylefool_features._CONVOLUTIONS for at in stage]
        for at, full in zip(places, self.WIDTHS, strict=True):
            width = full // 32
            shape = (width, before, 3, 3)
            state[f"features.{at}.weight"] = torch.randn(shape, generator=draw) / (3 * before**0.5)
            state[f"features.{at}.bias"] = torch.zeros(width)
            before = width
        path = tmp_path / stylefool_features.VGG19_FILE
        torch.save(state, path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setattr(stylefool_features, "VGG19_SHA256", digest[:8])
        return path

    def test_layers_have_the_sizes_and_the_depth_of_the_paper(self, file):
        styles, content = Vgg19(file)(torch.rand(2, 3, 32, 48))
        sides = [(32, 48), (16, 24), (8, 12), (4, 6), (2, 3)]
        assert [tuple(s.shape[-2:]) for s in styles] == sides
        assert [s.shape[1] for s in styles] == [w // 32 for w in (64, 128, 256, 512, 512)]
        assert content.shape == (2, 16, 4, 6)
        assert all((s >= 0).all() for s in styles)

    def test_it_equals_torchvisions_network(self, file):
        models = pytest.importorskip("torchvision.models")
        network = models.vgg19(weights=None).features.eval()
        state = torch.load(file, weights_only=True)
        for key, value in state.items():
            at, part = key.split(".")[1:]
            setattr(network[int(at)], part, torch.nn.Parameter(value))
        picture = torch.rand(1, 3, 32, 32)
        mean, std = (torch.tensor(v).view(3, 1, 1)
                     for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))  # fmt: skip
        styles, content = Vgg19(file)(picture)
        x, found = (picture - mean) / std, {}
        with torch.no_grad():
            for at in range(30):
                layer = network[at]
                # In place ReLUs would overwrite what was kept.
                x = x.relu() if isinstance(layer, torch.nn.ReLU) else layer(x)
                found[at] = x
        for maps, at in zip(styles, (1, 6, 11, 20, 29), strict=True):
            torch.testing.assert_close(maps / (255 * 0.226), found[at])
        torch.testing.assert_close(content / (255 * 0.226), found[22])

    def test_a_video_is_stylised(self, file):
        content, style = pictures("tiles", "waves")
        video = content[:, :32, :32].expand(2, 3, 32, 32)
        params = StylefoolParams(first_steps=3, next_steps=2)
        assert Gatys(params, Vgg19(file))(video, style).shape == video.shape

    def test_another_file_is_refused(self, file, monkeypatch):
        monkeypatch.setattr(stylefool_features, "VGG19_SHA256", "00000000")
        with pytest.raises(ComponentUnavailable, match="is not torchvision's"):
            Vgg19(file)(torch.rand(1, 3, 16, 16))

    def test_a_missing_file_is_named_with_where_to_get_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
        with pytest.raises(ComponentUnavailable, match=r"vgg19-dcbb9e9d\.pth.*VGG19_Weights"):
            vgg19_file("")
        (tmp_path / "checkpoints").mkdir()
        (tmp_path / "checkpoints" / "vgg19-dcbb9e9d.pth").touch()
        assert vgg19_file("").name == "vgg19-dcbb9e9d.pth"


def test_the_bundled_pictures_are_what_the_script_draws(tmp_path, monkeypatch):
    import importlib.util
    import sys
    from importlib.resources import files
    from pathlib import Path

    pytest.importorskip("PIL")
    script = Path(__file__).parents[1] / "tools" / "make_styles.py"
    if not script.exists():
        pytest.skip("only in the repository")
    spec = importlib.util.spec_from_file_location("make_styles", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", ["make_styles.py", str(tmp_path)])
    assert module.main() == 0
    shipped = files("vcr_attacks") / "styles"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in shipped.iterdir())
    drawn = style_pictures(str(tmp_path))
    for one, other in zip(drawn, style_pictures("bundled"), strict=True):
        assert torch.equal(one, other)
    assert sum(len(p.read_bytes()) for p in shipped.iterdir()) < 100_000
