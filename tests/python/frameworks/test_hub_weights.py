"""Vision Transformers of transformers and timm into `train`, and `weights` back: random models, so nothing is downloaded."""

import json
import os
import pathlib
import subprocess
from typing import Any

import pytest

import millrace

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")

SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "patch_size": 8, "image_size": 32}
OURS = ["--model", "vit", "--image-size", "32", "--patch", "8", "--hidden", "64", "--layers", "2", "--heads", "4", "--mlp", "96"]
STILL = ["--steps", "1", "--batch", "4", "--lr", "1e-30", "--weight-decay", "0", "--eval-every", "0", "--dropout", "0", "--warmup", "0"]


def run(*words: Any, status: int = 0) -> str:
    done = subprocess.run([os.environ["MILLRACE_BIN"], *map(str, words)], capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def hub_model(labels: list[str]) -> Any:
    torch.manual_seed(7)
    config = transformers.ViTConfig(**SIZES, id2label=dict(enumerate(labels)), label2id={name: i for i, name in enumerate(labels)})
    model = transformers.ViTForImageClassification(config).eval()
    for parameter in model.parameters():  # not the zeros of biases
        torch.nn.init.normal_(parameter, std=0.1)
    return model


def pixels_of(dataset: millrace.Dataset) -> Any:
    return next(iter(dataset.loader("val", 36, view=millrace.Square(32), array="torch")))[0]


def test_logits_are_those_of_transformers(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    labels = [*reversed(dataset.classes), "another"]  # other columns than the dataset's
    model = hub_model(labels)
    model.save_pretrained(tmp_path / "theirs")
    said = run("train", dataset.path, "--pretrained", tmp_path / "theirs", "--output", tmp_path / "run", *STILL)
    assert "10 of the 10 classes continue from the head" in said and "vit: patch 8, hidden 64" in said
    lines = run("predict", dataset.path, tmp_path / "run", "--format", "json", "--top", 10).splitlines()
    with torch.no_grad():
        logits = model(pixels_of(dataset)).logits[:, :10]
    expected = torch.softmax(logits, 1)
    for line, row in zip(lines, expected, strict=True):
        for found in json.loads(line)["top"]:
            assert abs(found["probability"] - float(row[labels.index(found["class"])])) < 1e-6


def test_weights_come_back_to_the_bit(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    model = hub_model(list(dataset.classes))
    model.save_pretrained(tmp_path / "theirs")
    run("train", dataset.path, "--pretrained", tmp_path / "theirs", "--output", tmp_path / "run", *STILL)
    assert "ViTForImageClassification" in run("weights", tmp_path / "run", tmp_path / "ours")
    assert "--force replaces it" in run("weights", tmp_path / "run", tmp_path / "ours", status=2)
    run("weights", "--force", tmp_path / "run", tmp_path / "ours")
    back = transformers.ViTForImageClassification.from_pretrained(tmp_path / "ours").eval()
    assert back.config.id2label == dict(enumerate(dataset.classes)) and back.config.layer_norm_eps == 1e-12
    before, after = model.state_dict(), back.state_dict()
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name
    processor = transformers.ViTImageProcessor.from_pretrained(tmp_path / "ours")
    assert processor.size == {"height": 32, "width": 32} and list(processor.image_mean) == [0.5, 0.5, 0.5]
    # And in again, from one file.
    said = run("train", dataset.path, "--pretrained", tmp_path / "ours/model.safetensors", "--output", tmp_path / "again", *STILL)
    assert "10 of the 10 classes continue" in said


def test_a_body_without_a_head(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    hub_model(list(dataset.classes)).vit.save_pretrained(tmp_path / "body")
    said = run("train", dataset.path, "--pretrained", tmp_path / "body", "--output", tmp_path / "run", *STILL)
    assert "head not loaded" in said
    # Of another image size: the positions are resized.
    said = run("train", dataset.path, "--pretrained", tmp_path / "body", "--image-size", 64, "--output", tmp_path / "large", *STILL)
    assert "position embedding resized from 4 x 4 to 8 x 8 patches" in said


def test_timm(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    timm = pytest.importorskip("timm.models.vision_transformer")
    torch.manual_seed(3)
    model = timm.VisionTransformer(img_size=32, patch_size=8, embed_dim=64, depth=2, num_heads=4, mlp_ratio=1.5, num_classes=5).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    (tmp_path / "timm").mkdir()
    safetensors_torch.save_file(model.state_dict(), str(tmp_path / "timm/model.safetensors"))
    (tmp_path / "timm/config.json").write_text('{"architecture": "vit", "pretrained_cfg": {"mean": [0.485, 0.456, 0.406]}}')
    said = run("train", dataset.path, *OURS, "--pretrained", tmp_path / "timm", "--output", tmp_path / "run", *STILL)
    assert "head not loaded" in said and "another mean and standard deviation" in said
    run("weights", tmp_path / "run", tmp_path / "ours")
    back = transformers.ViTForImageClassification.from_pretrained(tmp_path / "ours").eval()
    assert back.config.layer_norm_eps == 1e-6
    with torch.no_grad():
        expected = model.forward_features(pixels_of(dataset))
        found = back.vit(pixels_of(dataset)).last_hidden_state
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_act": "relu"}, "hidden_act is relu"),
        ({"model_type": "deit"}, "model_type is deit"),
        ({"qkv_bias": False}, "qkv_bias is false"),
        ({"layer_norm_eps": 2}, "layer_norm_eps is not a number"),
        ({"num_hidden_layers": 3}, "has no 'vit.encoder.layer.2"),
        ({"num_hidden_layers": 1}, "is not a parameter of this model"),
        ({"intermediate_size": 128}, "needs"),
    ],
)
def test_what_it_is_not(dataset: millrace.Dataset, tmp_path: pathlib.Path, change: dict[str, Any], words: str) -> None:
    folder = tmp_path / "theirs"
    hub_model(list(dataset.classes)).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    assert words in run("train", dataset.path, "--pretrained", folder, "--output", tmp_path / "run", *STILL, status=1)
