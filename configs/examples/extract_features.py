"""Extracts features of all patches on tissue by an encoder of yours, into one HDF5 file a slide, as CLAM and TRIDENT read them.

    patchbay map configs/examples/extract_features.yaml --call configs/examples/extract_features.py --out features

`weights` of the config names the encoder: TorchScript, or a module that torch.save wrote; it turns (N, 3, 224, 224) into (N, D).
With one of timm: torch.save(timm.create_model(NAME, num_classes=0, checkpoint_path=FILE), "encoder.pt").
"""
import torch


def load(weights, device):
    try:
        model = torch.jit.load(weights[0], map_location=device)
    except RuntimeError:  # no TorchScript. A module runs code of its file: load those that you trust.
        model = torch.load(weights[0], map_location=device, weights_only=False)
    return model.eval()


def predict(model, batch):
    """Half precision on a GPU; the file has float32, or float16 where the config says so."""
    images = torch.from_dlpack(batch["image"])
    with torch.inference_mode(), torch.autocast(images.device.type, enabled=images.is_cuda):
        return {"features": model(images)}
