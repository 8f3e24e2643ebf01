// Batches saved for a look from outside.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "runtime/client/stream.h"
#include "runtime/stream/batch_layout.h"
#include "runtime/stream/position.h"
#include "runtime/stream/stream_geometry.h"

namespace patchbay::cli {

/// Writes DIR/epoch-0000-batch-000000-ARRAY.npy for each array (NumPy format 1.0, C order; bfloat16
/// as |V2, which ml_dtypes reads). They get their names when all of them are complete: a batch for
/// which there is no room leaves none of them.
Status SaveBatch(const std::string& folder, const client::Batch& batch);

/// Makes the folder. AlreadyExists when it holds batches of an earlier run, unless `force`: those
/// that are not written again would be taken for this run's.
Status PrepareBatchFolder(const std::string& folder, bool force);

/// Bytes of the files of so many batches from `first` on, of the rank's part.
std::uint64_t BytesOfBatches(const BatchLayout& layout, const StreamGeometry& geometry,
                             std::uint32_t rank, const Position& first, std::uint64_t batches);

/// FailedPrecondition, naming --save, what is needed and what is free, unless the bytes of the
/// batches fit into the folder's file system.
Status CheckSaveFits(const std::string& folder, std::uint64_t batches, std::uint64_t needed_bytes);

/// The header of a .npy file for that tensor, padded to 64 bytes. InvalidArgument for a type NumPy
/// has no name for.
StatusOr<std::string> NpyHeader(DType dtype, const TensorView& tensor);

}  // namespace patchbay::cli
