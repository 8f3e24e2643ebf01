// One volume's voxels on the grid of another of the same patient: channels of one image.
#pragma once

#include <string>

#include "runtime/model/source/repair.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// Whether both have their voxels at the same places, to a thousandth of a voxel.
bool IsSameGrid(const Volume& first, const Volume& channel);

/// The farthest that a corner of one lies from the nearest corner of the other, in millimetres:
/// outer corners, half a voxel from the centres.
double CornersApartMm(const Volume& first, const Volume& channel);

/// Checks that a channel lies where the first one does: of the same patient and frame of reference,
/// as far as both state them, and with corners no more than the largest side of a voxel of either
/// apart. FailedPrecondition with the distance otherwise, but under kChannelGrid, for all but the
/// patient, the channel's log and warnings have what was found.
Status CheckSamePlace(const Volume& first, const Repairs& rules, Volume& channel);

/// The channel's values at the voxels of `first`: linear, of the nearest voxel up to half a voxel
/// outside, and `outside` beyond. int16 stays int16, rounded. A channel on the same grid stays as
/// it is, with the first one's affine. The log has the grid it was on. ResourceExhausted where the
/// other voxels do not fit into memory.
Status ResampleOnto(const Volume& first, double outside, const VolumeProgress& progress,
                    Volume& channel);

}  // namespace patchbay::workers
