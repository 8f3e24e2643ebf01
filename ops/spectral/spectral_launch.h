// How spectral's kernels are started. In spectral.cu; nothing there in a build without CUDA. A part
// of spectral.
#pragma once

#include "ops/spectral/spectral_passes.h"

struct CUstream_st;

namespace patchbay::ops {

/// Queues the rows pass over `strips` of pass.d_strips; returns CUDA's error number. Does not
/// synchronise.
int LaunchSpectralRows(const spectral_passes::RowsPass& pass, int strips, CUstream_st* stream);

/// Queues the columns pass over pass.frames; with coefficient counters when pass has them.
int LaunchSpectralColumns(const spectral_passes::ColumnsPass& pass, CUstream_st* stream);

}  // namespace patchbay::ops
