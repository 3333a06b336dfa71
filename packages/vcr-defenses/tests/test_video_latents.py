"""Video diffusion models through the code that loads published ones, at a tiny size."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from vcr_core.errors import ComponentUnavailable
from vcr_defenses.diffusion.latent import KlLatents
from vcr_defenses.diffusion.model_folder import model_folder
from vcr_defenses.diffusion.video_model import load_video_model, text_states
from vcr_defenses.diffusion.videopure import VideoPure
from vcr_defenses.params.diffusion import VideopureParams

diffusers = pytest.importorskip("diffusers", reason="the models are diffusers'")

BETAS = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012}


def seeded(build):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build()


def unet3d(**changes):
    return diffusers.UNet3DConditionModel(
        **{
            "sample_size": 8,
            "in_channels": 4,
            "out_channels": 4,
            "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
            "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
            "block_out_channels": (8, 16),
            "layers_per_block": 1,
            "norm_num_groups": 4,
            "cross_attention_dim": 16,
            "attention_head_dim": 4,
            **changes,
        }
    )


def autoencoder():
    return diffusers.AutoencoderKL(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=4,
        sample_size=32,
    )


def ddim(**changes):
    return diffusers.DDIMScheduler(
        **{"clip_sample": False, "set_alpha_to_one": False, "steps_offset": 1, **BETAS, **changes}
    )


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> Path:
    """A latent text-to-video model with random weights, saved as the published one is."""
    folder = tmp_path_factory.mktemp("pipeline")
    seeded(unet3d).save_pretrained(folder / "unet")
    seeded(autoencoder).save_pretrained(folder / "vae")
    ddim().save_pretrained(folder / "scheduler")
    return folder


def load(source, **changes):
    return load_video_model(VideopureParams(denoiser=str(source), **changes), "test")


def test_the_whole_method_on_a_latent_model(pipeline, make_clips, make_random):
    clips = make_clips(1, 2, 3, 3, 17, 22)
    params = VideopureParams(denoiser=str(pipeline), invert_steps=2, flow="zero")
    defense = VideoPure(params)
    made = defense.candidates(clips, make_random(1))
    assert made.shape == (3, *clips.shape)
    assert torch.isfinite(made).all()
    again = VideoPure(params).candidates(clips, make_random(1))
    assert torch.equal(made, again)
    assert VideoPure(params).model is defense.model
    alone = defense.candidates(clips[:, 1:], make_random(1))
    assert torch.equal(alone, made[:, :, 1:])


def test_no_steps_are_the_round_trip_of_the_autoencoder(pipeline, make_clips, make_random):
    clips = make_clips(1, 1, 2, 3, 16, 16)
    params = VideopureParams(denoiser=str(pipeline), invert_steps=0)
    out = VideoPure(params).apply(clips, make_random(1))[0, 0]
    vae = diffusers.AutoencoderKL.from_pretrained(pipeline / "vae", low_cpu_mem_usage=False)
    with torch.no_grad():
        coded = vae.encode(2 * clips[0, 0] - 1).latent_dist.mean
        expected = (vae.decode(coded).sample / 2 + 0.5).clamp(0, 1)
    torch.testing.assert_close(out, expected)


def test_inversion_and_denoising_equal_the_library_s(pipeline, make_clips):
    """DDIMInverseScheduler and DDIMScheduler under the same network."""
    defense = VideoPure(VideopureParams(denoiser=str(pipeline), invert_steps=3))
    model = defense.model
    start = z = model.encode(make_clips(1, 1, 3, 3, 16, 16)[0, 0])
    config = diffusers.DDIMScheduler.load_config(str(pipeline / "scheduler"))
    inverse = diffusers.DDIMInverseScheduler.from_config(config)
    inverse.set_timesteps(50)
    assert inverse.timesteps[:3].tolist() == defense.steps
    for t in inverse.timesteps[:3]:
        z = inverse.step(model.predict_eps(z, int(t)), t, z).prev_sample
    torch.testing.assert_close(defense.invert(start, None), z)
    forward = diffusers.DDIMScheduler.from_config(config)
    forward.set_timesteps(50)
    end = z
    for t in forward.timesteps[-3:]:
        end = forward.step(model.predict_eps(end, int(t)), t, end).prev_sample
    torch.testing.assert_close(defense.denoise(z), end)


@pytest.mark.parametrize("kind", ["v_prediction", "sample"])
def test_other_predictions_are_turned_into_noise(kind, pipeline, tmp_path, make_clips):
    folder = Path(shutil.copytree(pipeline, tmp_path / "m"))
    ddim(prediction_type=kind).save_pretrained(folder / "scheduler")
    model, plain = load(folder), load(pipeline)
    z = model.encode(make_clips(1, 1, 2, 3, 16, 16)[0, 0])
    scheduler = ddim(prediction_type=kind)
    scheduler.set_timesteps(50)
    t = int(scheduler.timesteps[-4])
    out = plain.predict_eps(z, t)
    x0 = scheduler.step(out, t, z).pred_original_sample
    abar = float(scheduler.alphas_cumprod[t])
    expected = (z - abar**0.5 * x0) / (1 - abar) ** 0.5
    torch.testing.assert_close(model.predict_eps(z, t), expected, rtol=1e-4, atol=1e-4)


def test_frames_pass_the_autoencoder_in_groups(make_clips):
    vae = seeded(autoencoder).eval().requires_grad_(False)
    sizes = []
    for name in ("encode", "decode"):
        inner = getattr(vae, name)
        setattr(vae, name, lambda part, inner=inner: (sizes.append(len(part)), inner(part))[1])
    frames = make_clips(1, 1, 7, 3, 16, 16)[0, 0]
    grouped = KlLatents(vae, 3).encode(frames)
    whole = KlLatents(vae, 7).encode(frames)
    assert sizes == [3, 3, 1, 7]
    torch.testing.assert_close(grouped, whole)
    assert KlLatents(vae, 2).decode(grouped).shape == frames.shape
    assert max(sizes[4:]) == 2


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_inside_only(dtype, pipeline, make_clips):
    model = load(pipeline, dtype=dtype)
    frames = make_clips(1, 1, 2, 3, 16, 16)[0, 0]
    z = model.encode(frames)
    eps = model.predict_eps(z, 21)
    assert z.dtype == eps.dtype == torch.float32
    torch.testing.assert_close(eps, load(pipeline).predict_eps(z, 21), rtol=0.1, atol=0.05)
    assert model.decode(z, (16, 16)).dtype == torch.float32


def test_values_that_are_not_finite_are_an_error(pipeline, make_clips):
    model = load(pipeline)
    z = model.encode(make_clips(1, 1, 2, 3, 16, 16)[0, 0])
    with pytest.raises(ComponentUnavailable, match=r"defense\.dtype"):
        model.decode(z * float("nan"), (16, 16))


def test_a_model_of_frames_works_too(tmp_path, make_clips, make_random):
    unet = seeded(
        lambda: diffusers.UNet2DModel(
            sample_size=16,
            block_out_channels=(8, 16),
            layers_per_block=1,
            norm_num_groups=4,
            down_block_types=("DownBlock2D",) * 2,
            up_block_types=("UpBlock2D",) * 2,
            add_attention=False,
        )
    )
    unet.save_pretrained(tmp_path / "unet")
    ddim().save_pretrained(tmp_path / "scheduler")
    clips = make_clips(1, 1, 3, 3, 15, 18)
    params = VideopureParams(denoiser=str(tmp_path), invert_steps=1, frame_chunk=2)
    out = VideoPure(params).candidates(clips, make_random(1))
    assert out.shape == (2, *clips.shape)
    model = load(tmp_path)
    z = model.encode(clips[0, 0])
    order = torch.tensor([2, 0, 1])
    eps = model.predict_eps(z, 5)
    torch.testing.assert_close(model.predict_eps(z[:, :, order], 5), eps[:, :, order])


def test_a_prompt_is_encoded_by_the_model_s_own_text_encoder(pipeline, tmp_path):
    transformers = pytest.importorskip("transformers", reason="reads text encoders")
    folder = Path(shutil.copytree(pipeline, tmp_path / "m"))
    config = transformers.CLIPTextConfig(
        vocab_size=514, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=7, bos_token_id=512, eos_token_id=513,
    )  # fmt: skip
    seeded(lambda: transformers.CLIPTextModel(config)).save_pretrained(folder / "text_encoder")
    vocabulary = [chr(33 + i) for i in range(256)]
    vocabulary = [*vocabulary, *(v + "</w>" for v in vocabulary)]
    words = {v: i for i, v in enumerate([*vocabulary, "<|startoftext|>", "<|endoftext|>"])}
    (tmp_path / "vocab.json").write_text(json.dumps(words))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    transformers.CLIPTokenizer(
        str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"), model_max_length=7
    ).save_pretrained(folder / "tokenizer")
    empty, cat = (text_states(folder, 16, p, "test") for p in ("", "cat"))
    assert empty.shape == cat.shape == (1, 7, 16)
    assert not torch.equal(empty, cat)


# -- what is missing ---------------------------------------------------------------------------


def test_nothing_is_downloaded_and_the_message_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ComponentUnavailable) as caught:
        load("damo-vilab/text-to-video-ms-1.7b")
    message = str(caught.value)
    assert "hf download damo-vilab/text-to-video-ms-1.7b" in message
    assert "defense.denoiser" in message


@pytest.mark.parametrize(
    ("source", "expected"),
    [("/no/such/folder", "no folder"), ("plain-name", "motion-video"), ("a/b/c", "no folder")],
)
def test_an_unknown_source_names_what_is_known(source, expected):
    with pytest.raises(ComponentUnavailable, match=expected):
        model_folder(source, "test")


def test_broken_folders_name_the_file_at_fault(pipeline, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ComponentUnavailable, match=r"unet/config\.json is missing"):
        load(tmp_path / "empty")
    broken = Path(shutil.copytree(pipeline, tmp_path / "broken"))
    (broken / "scheduler" / "scheduler_config.json").write_text("{")
    with pytest.raises(ComponentUnavailable, match="not valid JSON"):
        load(broken)
    ddim(prediction_type="epsilon").save_pretrained(broken / "scheduler")
    (broken / "unet" / "diffusion_pytorch_model.safetensors").unlink()
    with pytest.raises(ComponentUnavailable, match="unet of"):
        load(broken)
    with pytest.raises(ComponentUnavailable, match="variant is 'fp16'"):
        load(pipeline, variant="fp16")
    with pytest.raises(ComponentUnavailable, match=r"prompt has to be empty"):
        load(pipeline, prompt="a cat")


def test_other_networks_and_schedules_are_refused(pipeline, tmp_path):
    folder = Path(shutil.copytree(pipeline, tmp_path / "m"))
    file = folder / "unet" / "config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({**config, "_class_name": "UNetSpatioTemporalConditionModel"}))
    with pytest.raises(ComponentUnavailable, match="is a UNetSpatioTemporal"):
        # Said before anything is classified, not at the first clip.
        VideoPure(VideopureParams(denoiser=str(folder)))
    file.write_text(json.dumps(config))
    shutil.rmtree(folder / "vae")
    with pytest.raises(ComponentUnavailable, match="4 channels are no square blocks"):
        load(folder)
    shutil.copytree(pipeline / "vae", folder / "vae")
    ddim(rescale_betas_zero_snr=True).save_pretrained(folder / "scheduler")
    with pytest.raises(ComponentUnavailable, match="zero_snr"):
        load(folder)
