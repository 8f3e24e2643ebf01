// The values of a volume as float32 and int16.
#pragma once

#include <cstdint>
#include <vector>

#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// The voxels as float32; those of int16 exactly.
std::vector<float> FloatsOf(const Volume& volume);
/// Makes voxels of int16 float32.
void MakeFloat(Volume& volume);
/// Rounded to the nearest, halves to even, and clamped.
std::int16_t NearestInt16(float value);

}  // namespace patchbay::workers
