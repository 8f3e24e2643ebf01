"""Own functions for values that the model gets: at: values."""
import numpy as np


def grid_mask(image, mask, rng, step=32, cover=0.25):
    """Sets the squares of a grid, shifted by chance, to 0: the mean of normalised values."""
    side = round(step * cover ** 0.5)
    for i, generator in enumerate(rng):
        y, x = (generator.integers(0, step) for _ in range(2))
        rows = (np.arange(image.shape[-3]) + y) % step < side
        columns = (np.arange(image.shape[-2]) + x) % step < side
        image[i, ..., rows[:, None] & columns, :] = 0
