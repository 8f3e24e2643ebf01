// Encodes one inner chunk for the image writer: compresses it, names its pixels.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"
#include "runtime/format/zarr/codec/blosc.h"
#include "runtime/format/zarr/codec/image_settings.h"

struct ZSTD_CCtx_s;

namespace patchbay::zarr {

/// Compresses whole chunks. One internal thread and fixed block size: same bytes every time. Not
/// thread-safe.
class ChunkEncoder {
 public:
  /// `settings` is valid and outlives the encoder.
  explicit ChunkEncoder(const ImageStoreSettings& settings);
  ~ChunkEncoder();
  ChunkEncoder(const ChunkEncoder&) = delete;
  ChunkEncoder& operator=(const ChunkEncoder&) = delete;

  /// Appends the compressed chunk, without checksum.
  Status Append(std::span<const std::byte> raw, std::vector<std::byte>& out);

 private:
  StatusOr<std::span<const std::byte>> Encode(std::span<const std::byte> raw);
  StatusOr<std::span<const std::byte>> EncodeZstd(std::span<const std::byte> raw);
  StatusOr<std::span<const std::byte>> EncodeBlosc(std::span<const std::byte> raw,
                                                   const char* compressor);

  const ImageStoreSettings& settings_;
  ZSTD_CCtx_s* zstd_ = nullptr;
  std::optional<BloscZstdEncoder> blosc_zstd_;  ///< for elements of one byte
  std::vector<std::byte> encoded_;              ///< the worst case fits; made once
};

/// Digests of decoded pixels: SHA-256 over the rows of the part inside the image, interleaved,
/// little-endian. They do not depend on codecs and fill values. Not thread-safe.
class PixelHasher {
 public:
  explicit PixelHasher(const ImageStoreSettings& settings) : settings_(settings) {}

  /// `view` is (depth, height, width, channels), interleaved. `is_fill`: every element is the fill
  /// value; its digest is computed once per shape.
  Digest Hash(const ConstTensorView& view, bool is_fill);
  /// The digests of several chunks, hashed in parallel lanes.
  std::vector<Digest> HashEach(std::span<const ConstTensorView> views,
                               const std::vector<bool>& is_fill);

 private:
  const ImageStoreSettings& settings_;
  std::map<std::array<std::int64_t, 3>, Digest> fill_digests_;  ///< by depth, height, width
};

}  // namespace patchbay::zarr
