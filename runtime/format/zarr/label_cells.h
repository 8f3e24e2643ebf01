// The chunks of a label image on their way into a zarr shard: counted, hashed and encoded while the
// cache holds their pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/image_store.h"

namespace patchbay::zarr {

/// A chunk as AppendEncoded takes it: no bytes where it is background.
struct EncodedCell {
  std::vector<std::byte> bytes;
  Digest pixels;
};

/// A chunk's pixels, rows at the chunk's width, and the part of them that lies in the level.
struct CellPart {
  const LabelCell* cell;
  std::int64_t height, width;
};

/// One thread's. Its results depend on the pixels and settings alone. Digests of pixels come
/// later, as soon as enough chunks are there to be hashed side by side, and at the latest by
/// FinishDigests.
class LabelCellEncoder {
 public:
  /// `settings`, of uint8 and one channel, outlive it.
  explicit LabelCellEncoder(const ImageStoreSettings& settings);

  /// `out` and the pixels stay where they are until FinishDigests.
  Status Encode(const CellPart& part, EncodedCell& out);
  /// Completes what this and `other` encoded.
  void FinishDigests(LabelCellEncoder& other);
  /// Adds the pixels of a chunk to counts().
  void Count(const CellPart& part);
  /// Pixels by value.
  const std::array<std::uint64_t, 256>& counts() const { return counts_; }

 private:
  void HashWaiting();
  Status EncodePixels(const std::uint8_t* pixels, std::int64_t height, std::int64_t width,
                      std::vector<std::byte>& to);
  StatusOr<const EncodedCell*> ConstantOf(std::uint8_t value, std::int64_t height,
                                          std::int64_t width);
  ConstTensorView ViewOf(const std::uint8_t* pixels, std::int64_t height, std::int64_t width) const;

  const ImageStoreSettings& settings_;
  ChunkEncoder encoder_;
  PixelHasher hasher_;
  std::map<std::array<std::int64_t, 3>, EncodedCell> constants_;  ///< by value, height, width
  std::vector<std::byte> raw_;
  std::vector<ConstTensorView> waiting_;  ///< pixels of chunks without a digest
  std::vector<Digest*> digests_;          ///< where theirs go
  std::array<std::uint64_t, 256> counts_{};
};

/// Adds a chunk's pixels to `out`, by value.
void Tally(const CellPart& part, std::int64_t row_bytes, std::array<std::uint64_t, 256>& out);

}  // namespace patchbay::zarr
