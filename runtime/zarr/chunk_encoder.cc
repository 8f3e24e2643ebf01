#include "runtime/zarr/chunk_encoder.h"

#include <blosc.h>
#include <zstd.h>

#include "runtime/base/strings.h"

namespace patchbay::zarr {

ChunkEncoder::ChunkEncoder(const ImageStoreSettings& settings)
    : settings_(settings),
      zstd_(settings.codec == StoreCodec::kZstd ? ZSTD_createCCtx() : nullptr) {}

ChunkEncoder::~ChunkEncoder() { ZSTD_freeCCtx(zstd_); }

Status ChunkEncoder::Append(std::span<const std::byte> raw, std::vector<std::byte>& out) {
  if (settings_.codec == StoreCodec::kZstd) {
    encoded_.resize(ZSTD_compressBound(raw.size()));
    const std::size_t n = ZSTD_compressCCtx(zstd_, encoded_.data(), encoded_.size(), raw.data(),
                                            raw.size(), settings_.codec_level);
    if (ZSTD_isError(n)) {
      return absl::InternalError(StrCat("encode chunk: zstd: ", ZSTD_getErrorName(n)));
    }
    out.insert(out.end(), encoded_.data(), encoded_.data() + n);
    return absl::OkStatus();
  }
  encoded_.resize(raw.size() + BLOSC_MAX_OVERHEAD);
  const char* inner = settings_.codec == StoreCodec::kBloscLz4 ? "lz4" : "zstd";
  const int n =
      blosc_compress_ctx(settings_.codec_level, BLOSC_NOSHUFFLE, 1, raw.size(), raw.data(),
                         encoded_.data(), encoded_.size(), inner, settings_.blosc_block_bytes, 1);
  if (n <= 0) return absl::InternalError(StrCat("encode chunk: blosc returned ", n));
  out.insert(out.end(), encoded_.data(), encoded_.data() + n);
  return absl::OkStatus();
}

Digest PixelHasher::Hash(const ConstTensorView& view, bool is_fill) {
  const std::pair key(view.shape[0], view.shape[1]);
  if (is_fill) {
    if (const auto found = fill_digests_.find(key); found != fill_digests_.end()) {
      return found->second;
    }
  }
  const std::int64_t row_bytes =
      view.shape[1] * view.shape[2] * static_cast<std::int64_t>(SizeOf(settings_.dtype));
  Sha256 hash;
  if (view.stride_bytes[0] == row_bytes) {
    hash.Update({view.data, static_cast<std::size_t>(row_bytes * view.shape[0])});
  } else {
    for (std::int64_t y = 0; y < view.shape[0]; ++y) {
      hash.Update({view.data + y * view.stride_bytes[0], static_cast<std::size_t>(row_bytes)});
    }
  }
  const Digest digest = hash.Finish();
  if (is_fill) fill_digests_[key] = digest;
  return digest;
}

}  // namespace patchbay::zarr
