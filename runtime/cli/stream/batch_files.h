// Batches saved for a look from outside.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/client/stream.h"
#include "runtime/core/status.h"
#include "runtime/model/stream/batch_layout.h"
#include "runtime/model/stream/position.h"
#include "runtime/model/stream/stream_geometry.h"
#include "runtime/os/file.h"

namespace patchbay::cli {

/// The part of the batches that is saved, and the rule for files that exist already.
struct BatchFolderOptions {
  std::uint32_t rank = 0, world_size = 1;
  bool force = false;  ///< write into a folder with batches of an earlier run, and replace them
};

/// The folder that one stream, or one rank of it, saves batches to. While it lives no other stream
/// opens the folder; ranks share it, and their files carry the rank.
class BatchFolder {
 public:
  /// Makes the folder. AlreadyExists when it holds batches of an earlier run, of this rank or of a
  /// stream without ranks, unless forced: batches that are not written again would be mistaken for
  /// this run's. FailedPrecondition while another stream saves there.
  static StatusOr<BatchFolder> Open(const std::string& folder, const BatchFolderOptions& options);

  /// Writes epoch-0000-batch-000000-ARRAY.npy for each array, with -rank-R before the array where
  /// there are several ranks (NumPy format 1.0, C order; bfloat16 as |V2, which ml_dtypes reads).
  /// The files are renamed into place once all of them are complete: a batch that does not fit on
  /// the disk leaves no file. AlreadyExists when a name is taken, unless forced.
  Status Save(const client::Batch& batch) const;

  /// Without the array: "epoch-0000-batch-000000" or "epoch-0000-batch-000000-rank-3".
  std::string NameOf(const Position& position) const;

 private:
  BatchFolder(std::string folder, const BatchFolderOptions& options, UniqueFd lock)
      : folder_(std::move(folder)), options_(options), lock_(std::move(lock)) {}

  std::string folder_;
  BatchFolderOptions options_;
  UniqueFd lock_;
};

/// Bytes of the files of the rank's part of `batches` batches from `first` on.
std::uint64_t BytesOfBatches(const BatchLayout& layout, const StreamGeometry& geometry,
                             std::uint32_t rank, const Position& first, std::uint64_t batches);

/// FailedPrecondition, naming --save, the needed and the free bytes, unless the batches fit into
/// the folder's file system.
Status CheckSaveFits(const std::string& folder, std::uint64_t batches, std::uint64_t needed_bytes);

/// The header of a .npy file for that tensor, padded to 64 bytes. InvalidArgument for a type NumPy
/// has no name for.
StatusOr<std::string> NpyHeader(DType dtype, const TensorView& tensor);

}  // namespace patchbay::cli
