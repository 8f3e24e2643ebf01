// The cost of lossless codecs on pixels of the job's own sources: encoded, and read back in patches
// at random places, by processor time of this thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/zarr/codec/array_metadata.h"
#include "runtime/format/zarr/codec/chunk_codec.h"
#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/shard_encoder.h"

namespace patchbay::workers {

/// Nanoseconds of processor time since the last call on this thread.
double TakeCpuNs();

/// A patch that streams read: 512 x 512 pixels, or 96 x 96 x 96 voxels.
Extent SampledPatch(const zarr::ImageStoreSettings& store);

/// Sums over patches.
struct PatchCost {
  double patches = 0, ns = 0, bytes = 0;
};

/// One codec, over all pixels so far.
class CodecSample {
 public:
  /// `store`: of the stores that would be made, but for its codec.
  static StatusOr<std::unique_ptr<CodecSample>> Make(zarr::ImageStoreSettings store,
                                                     zarr::StoreCodec codec);

  /// `pixels`: (depth, height, width, channels), contiguous from the last axis on. Its whole chunks
  /// are taken; where there is none, one with the fill value around the pixels.
  Status Add(const ConstTensorView& pixels);

  double raw_bytes() const { return raw_bytes_; }
  double stored_bytes() const { return stored_bytes_; }
  /// Processor time of compressing, and of the digests of files at their making and their check.
  double encode_ns() const { return encode_ns_; }
  const PatchCost& patch() const { return patch_; }

 private:
  CodecSample(zarr::ImageStoreSettings store, zarr::ArrayMetadata array)
      : store_(store), array_(std::move(array)), encoder_(store_) {}

  void CopyChunk(const ConstTensorView& pixels, const Point& corner);
  Status ReadPatch(const zarr::ShardPiece& piece);
  Status DecodePart(const zarr::ShardPiece& piece, const Point& from, const Extent& part,
                    const Point& to);

  const zarr::ImageStoreSettings store_;
  const zarr::ArrayMetadata array_;
  zarr::ChunkEncoder encoder_;
  zarr::ChunkScratch scratch_;
  std::vector<std::byte> raw_, encoded_, fetched_, patch_pixels_;
  double raw_bytes_ = 0, stored_bytes_ = 0, encode_ns_ = 0;
  PatchCost patch_;
  std::uint32_t draws_ = 0;
};

}  // namespace patchbay::workers
