"""Where patches lie: in the pixels of a result, in pixels of level 0 and in micrometres."""
import dataclasses
import math

_MM_UM = 1000.0
_MOVING = {"crop", "flip", "rotate90", "affine", "elastic"}  # ops after which `box` is not where pixels are


def _triple(values):
    """[y, x] or [z, y, x] as (z, y, x)."""
    values = [int(value) for value in values]
    return (1, *values) if len(values) == 2 else tuple(values)


@dataclasses.dataclass(frozen=True)
class Grid:
    """Grid of a run: the patch as the function receives it and its step, (z, y, x) in pixels of the patch."""
    size: tuple
    stride: tuple
    volume: bool
    is_grid: bool  # False for a table of places
    moving: frozenset = frozenset()  # ops of `preprocess` that move pixels

    @classmethod
    def of(cls, config):
        """The grid of a whole run config, as `patchbay config print` shows it."""
        patch, sampling = config["patch"], config.get("sampling", {})
        size = _triple(patch["size"])
        stride = size
        if sampling.get("stride"):
            stride = _triple(sampling["stride"])
        elif sampling.get("overlap"):
            stride = tuple(max(1, whole - shared) for whole, shared in zip(size, (0, *sampling["overlap"])[-3:]))
        moving = _MOVING.intersection(name for step in config.get("preprocess", []) for name in step)
        return cls(size, stride, len(patch["size"]) == 3, sampling.get("positions", "grid") == "grid", moving)

    def has_pictures(self):
        """Whether a batch shows a place of a slide as it is."""
        return self.is_grid and not self.volume and not self.moving


@dataclasses.dataclass(frozen=True)
class Scale:
    """step: of a result's pixels, z, y, x. finest: of the image's level 0. Both in `unit`; None = pixels of level 0."""
    step: tuple
    finest: tuple
    unit: object


class ImagePlace:
    """The geometry of one image: its record in `Stream.images`, and one box of its patches, all of which are alike."""

    def __init__(self, grid, record, level, box):
        self.grid, self.record, self.level = grid, record, int(level)
        self.box = tuple(int(value) for value in box[3:6])
        sizes = record["level_sizes"]
        self.extent, self.extent_stored = (tuple(int(value) for value in sizes[level]) for level in (self.level, 0))
        self.downsample = self._downsample(sizes, record.get("downsamples") or [1.0])

    def _downsample(self, sizes, downsamples):
        """The level's against level 0, z, y, x."""
        if self.grid.volume:  # axes of a volume may shrink apart, and every level is rounded up from the one before
            return tuple(float(math.prod(round(n / fewer) for n, fewer in zip(axis, axis[1:]))) for axis in zip(*sizes[:self.level + 1]))
        ratio = float(downsamples[self.level])
        return (1.0, ratio, ratio)

    def origin(self, box, pixels):
        """A box's first pixel in an image of which `pixels` (z, y, x) make one patch; to the nearest, halves up."""
        return tuple((2 * int(at) * n + whole) // (2 * whole) for at, n, whole in zip(box[:3], pixels, self.box))

    def box_step(self):
        """From neighbour to neighbour of the grid in pixels of the level, z, y, x, as runtime/model/plan has it."""
        return tuple(max(1, (stride * whole + size // 2) // size)
                     for stride, whole, size in zip(self.grid.stride, self.box, self.grid.size))

    def step(self, pixels):
        """(least, most) distance of neighbours in an image of which `pixels` make one patch, whose origins are rounded to it."""
        exact = [(step * n, whole) for step, n, whole in zip(self.box_step(), pixels, self.box)]
        return tuple(max(1, n // whole) for n, whole in exact), tuple(-(-n // whole) for n, whole in exact)

    def extent_in(self, pixels):
        """The image's extent there; the last pixel may be a part of one."""
        return tuple(-(-side * n // whole) for side, n, whole in zip(self.extent, pixels, self.box))

    def finest_um(self):
        """Micrometres of a pixel of level 0 (z, y, x), or None where the image does not say it."""
        spacing, mpp = self.record.get("spacing"), self.record.get("mpp")
        if spacing:
            return tuple(_MM_UM * mm for mm in spacing)
        return None if not mpp else (1.0, float(mpp), float(mpp))

    def scale(self, pixels):
        """The Scale of an image of which `pixels` (z, y, x) make one patch."""
        um = self.finest_um()
        finest = um or (1.0, 1.0, 1.0)
        step = tuple(one * times * whole / n for one, times, whole, n in zip(finest, self.downsample, self.box, pixels))
        return Scale(step, finest, "micrometer" if um else None)

    def stored_scale(self):
        """The Scale of level 0 itself."""
        um = self.finest_um()
        finest = um or (1.0, 1.0, 1.0)
        return Scale(finest, finest, "micrometer" if um else None)

    def stored_per_pixel(self, pixels):
        """How many voxels of level 0 a pixel of such an image is long, along each axis, as (n, d): n / d."""
        return tuple((round(times) * whole, n) for times, whole, n in zip(self.downsample, self.box, pixels))

    def grid_scale(self):
        """The Scale of an image with one pixel for each patch."""
        one = self.scale(self.box)
        return Scale(tuple(step * times for step, times in zip(one.step, self.box_step())), one.finest, one.unit)

    def corner(self, box):
        """(z, y, x) of a box's first pixel at level 0, whole pixels."""
        return tuple(int(round(int(at) * times)) for at, times in zip(box[:3], self.downsample))

    def corner_um(self, box):
        """(z, y, x) of a box's first corner in micrometres from the image's, or three None."""
        um = self.finest_um()
        return (None,) * 3 if um is None else tuple(int(at) * times * one for at, times, one in zip(box[:3], self.downsample, um))
