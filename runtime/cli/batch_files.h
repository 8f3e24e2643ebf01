// Batches saved for a look from outside.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/client/stream.h"

namespace patchbay::cli {

/// Writes DIR/epoch-0000-batch-000000-ARRAY.npy for each array (NumPy format 1.0, C order; bfloat16
/// as |V2, which ml_dtypes reads) under its final name only when complete.
Status SaveBatch(const std::string& folder, const client::Batch& batch);

/// Makes the folder. AlreadyExists when it holds batches of an earlier run, unless `force`: those
/// that are not written again would be taken for this run's.
Status PrepareBatchFolder(const std::string& folder, bool force);

/// The header of a .npy file for that tensor, padded to 64 bytes. InvalidArgument for a type NumPy
/// has no name for.
StatusOr<std::string> NpyHeader(DType dtype, const TensorView& tensor);

}  // namespace patchbay::cli
