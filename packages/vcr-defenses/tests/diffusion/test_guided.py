from __future__ import annotations

import math

import pytest
import torch
from vcr_core.errors import ComponentUnavailable
from vcr_defenses.diffusion.frame_model import find_frame_model
from vcr_defenses.diffusion.guided_checkpoint import guided_schedule, load_guided
from vcr_defenses.diffusion.guided_unet import GuidedShape, GuidedUNet, step_features

TINY = GuidedShape(width=16, multipliers=(1, 2), blocks=1, attention=(2,), head=8, groups=4)


def tiny(seed: int = 0) -> GuidedUNet:
    network = GuidedUNet(TINY)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in network.parameters():
            value.copy_(torch.randn(value.shape, generator=generator) * 0.1)
    return network.eval()


@pytest.mark.golden
def test_the_published_model_has_its_published_number_of_parameters():
    with torch.device("meta"):
        network = GuidedUNet()
    assert sum(value.numel() for value in network.parameters()) == 552_814_086


@pytest.mark.golden
def test_keys_and_shapes_are_those_of_the_checkpoint():
    with torch.device("meta"):
        state = GuidedUNet().state_dict()
    expected = {
        "time_embed.2.weight": (1024, 1024),
        "input_blocks.0.0.weight": (256, 3, 3, 3),
        "input_blocks.3.0.out_layers.3.weight": (256, 256, 3, 3),
        "input_blocks.7.0.skip_connection.weight": (512, 256, 1, 1),
        "input_blocks.10.1.qkv.weight": (1536, 512, 1),
        "input_blocks.17.1.proj_out.bias": (1024,),
        "middle_block.1.norm.weight": (1024,),
        "output_blocks.0.0.in_layers.2.weight": (1024, 2048, 3, 3),
        "output_blocks.2.2.emb_layers.1.weight": (2048, 1024),
        "output_blocks.11.1.in_layers.0.weight": (512,),
        "out.2.weight": (6, 256, 3, 3),
    }
    assert {key: tuple(state[key].shape) for key in expected} == expected
    assert len(state) == 566


def test_step_features_are_cosines_then_sines():
    features = step_features(7, 8)
    angles = [7 * math.exp(-math.log(10000) * i / 4) for i in range(4)]
    wanted = [f(a) for f in (math.cos, math.sin) for a in angles]
    torch.testing.assert_close(features, torch.tensor(wanted))


def test_attention_keeps_a_heads_query_key_and_value_side_by_side():
    network = tiny()
    block = network.middle_block[1]
    x = torch.randn(1, 32, 4, 4, generator=torch.Generator().manual_seed(1))
    flat = x.flatten(2)
    qkv = block.qkv(block.norm(flat))[0].reshape(4, 3, 8, 16)
    heads = []
    for q, k, v in qkv:
        weights = torch.softmax(q.T @ k / math.sqrt(8), dim=-1)
        heads.append(v @ weights.T)
    wanted = flat[0] + block.proj_out(torch.cat(heads)[None])[0]
    torch.testing.assert_close(block(x, torch.zeros(1))[0].flatten(1), wanted)


def test_the_step_and_every_position_matter():
    network = tiny()
    x = torch.randn(2, 3, 8, 12, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        out = network(x, 3)
        assert out.shape == (2, 6, 8, 12)
        torch.testing.assert_close(network(x[:1], 3), out[:1])
        assert not torch.allclose(network(x, 90), out)


def test_a_checkpoint_is_read_into_the_network(tmp_path):
    network, file = tiny(), tmp_path / "model.pt"
    torch.save(network.state_dict(), file)
    read = load_guided(file, torch.float32, "diffpure", TINY)
    x = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.equal(read(x, 5), network(x, 5))


def test_another_file_is_refused(tmp_path):
    file = tmp_path / "model.pt"
    torch.save({"weight": torch.zeros(2)}, file)
    with pytest.raises(ComponentUnavailable, match="no unconditional 256 x 256 checkpoint"):
        load_guided(file, torch.float32, "diffpure", TINY)
    for content in (b"nonsense", b""):
        file.write_bytes(content)
        with pytest.raises(ComponentUnavailable, match="no unconditional 256 x 256 checkpoint"):
            load_guided(file, torch.float32, "diffpure", TINY)


def test_a_missing_checkpoint_says_where_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    with pytest.raises(ComponentUnavailable, match="put https://openaipublic"):
        find_frame_model("guided-diffusion-256", "freqpure")
    with pytest.raises(ComponentUnavailable, match="there is no file"):
        find_frame_model(str(tmp_path / "x.pt"), "freqpure")


def test_what_is_known_of_a_checkpoint_before_it_is_read(tmp_path):
    file = tmp_path / "model.pt"
    file.write_bytes(b"")
    info = find_frame_model(str(file), "diffpure")
    assert (info.size, info.multiple, len(info.schedule)) == (256, 32, 1000)
    levels = guided_schedule()
    assert levels.abar(0) == pytest.approx(1 - 1e-4)
    assert levels.abar(999) / levels.abar(998) == pytest.approx(1 - 0.02)
