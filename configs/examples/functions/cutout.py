"""Own functions for patches as they are read: at: pixels."""


def cutout(image, mask, rng, size=48, p=0.5, value=None):
    """Covers one square of a patch, by chance p. Classes below it are ignored in the loss."""
    for i, generator in enumerate(rng):
        if generator.random() >= p:
            continue
        top, left = (generator.integers(0, side - size + 1) for side in image.shape[-3:-1])
        square = (i, ..., slice(top, top + size), slice(left, left + size))
        image[(*square, slice(None))] = image[i].mean(axis=tuple(range(image.ndim - 2))) if value is None else value
        if mask is not None:
            mask[square] = 255
