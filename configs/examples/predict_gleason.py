"""Predicts with a model of train_gleason.py: for every slide a map of nuclei, and a score of every patch.

    patchbay map configs/examples/predict_gleason.yaml --call configs/examples/predict_gleason.py --out gleason

The folder has probabilities and classes as OME-Zarr at the slide's resolution, CSV, and pictures of both over the slide.
"""
import torch

from train_gleason import Net


def load(weights, device):
    """Once a process. weights: the files that the config lists. device: "cpu", or "cuda:0" with --devices 0."""
    torch.set_num_threads(1)
    model = Net()
    model.load_state_dict(torch.load(weights[0], map_location=device)["model"])
    return model.to(device).eval()


def predict(model, batch):
    """Softmax of both heads, on the device where the batch lies: (N, 2, 64, 64) and (N, 2)."""
    with torch.inference_mode():
        patch, pixel = model(torch.from_dlpack(batch["image"]))
    return {"nuclei": pixel.softmax(1), "patch": patch.softmax(1)}
