"""Own functions for volumes, (N, D, H, W, C)."""
import numpy as np


def bias_field(image, mask, rng, strength=0.3):
    """Multiplies a volume by a smooth field, as the coil of an MR scanner does."""
    axes = [np.linspace(-1, 1, side, dtype=np.float32) for side in image.shape[1:4]]
    z, y, x = np.meshgrid(*axes, indexing="ij", sparse=True)
    for i, generator in enumerate(rng):
        a, b, c, d = generator.uniform(-strength, strength, 4).astype(np.float32)
        image[i] *= np.exp(a * z + b * y + c * x + d * x * y)[..., None]
