"""Predicts with a model of train_colorectal.py: lesions of every volume of the split val, on the voxels of its store.

    patchbay map configs/examples/predict_colorectal.yaml --call configs/examples/predict_colorectal.py --split val --out colorectal

Patches overlap by half and are blended with Gaussian weights. Probabilities return to the store's voxels before each of
these gets its class.
"""
import torch

from train_colorectal import UNet


def load(weights, device):
    torch.set_num_threads(1)
    model = UNet()
    model.load_state_dict(torch.load(weights[0], map_location=device)["model"])
    return model.to(device).eval()


def predict(model, batch):
    """(N, 3, 32, 32, 32); the mean with the mirrored patch, as the network was trained with mirrored ones."""
    x = torch.from_dlpack(batch["image"])
    with torch.inference_mode():
        there, mirrored = model(x).softmax(1), model(x.flip(-1)).softmax(1).flip(-1)
    return {"lesions": (there + mirrored) / 2}
