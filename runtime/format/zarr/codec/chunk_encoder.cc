#include "runtime/format/zarr/codec/chunk_encoder.h"

#include <blosc.h>
#include <zstd.h>

#include "runtime/core/strings.h"

namespace patchbay::zarr {

ChunkEncoder::ChunkEncoder(const ImageStoreSettings& settings)
    : settings_(settings),
      zstd_(settings.codec == StoreCodec::kZstd ? ZSTD_createCCtx() : nullptr) {
  if (settings.codec == StoreCodec::kBloscZstd && SizeOf(settings.dtype) == 1) {
    blosc_zstd_.emplace(settings.codec_level, settings.blosc_block_bytes);
  }
}

ChunkEncoder::~ChunkEncoder() { ZSTD_freeCCtx(zstd_); }

Status ChunkEncoder::Append(std::span<const std::byte> raw, std::vector<std::byte>& out) {
  PB_ASSIGN_OR_RETURN(const std::span<const std::byte> encoded, Encode(raw));
  out.insert(out.end(), encoded.begin(), encoded.end());
  return absl::OkStatus();
}

StatusOr<std::span<const std::byte>> ChunkEncoder::Encode(std::span<const std::byte> raw) {
  switch (settings_.codec) {
    case StoreCodec::kZstd:
      return EncodeZstd(raw);
    case StoreCodec::kBloscLz4:
      return EncodeBlosc(raw, "lz4");
    case StoreCodec::kBloscZstd:
      return blosc_zstd_ ? blosc_zstd_->Encode(raw) : EncodeBlosc(raw, "zstd");
    case StoreCodec::kKeep:
      break;
  }
  return Internal("encode chunk: a codec that encodes nothing");
}

StatusOr<std::span<const std::byte>> ChunkEncoder::EncodeZstd(std::span<const std::byte> raw) {
  encoded_.resize(ZSTD_compressBound(raw.size()));
  const std::size_t n = ZSTD_compressCCtx(zstd_, encoded_.data(), encoded_.size(), raw.data(),
                                          raw.size(), settings_.codec_level);
  if (ZSTD_isError(n) == 0) return std::span<const std::byte>(encoded_).first(n);
  return Internal("encode chunk: zstd: ", ZSTD_getErrorName(n));
}

StatusOr<std::span<const std::byte>> ChunkEncoder::EncodeBlosc(std::span<const std::byte> raw,
                                                               const char* compressor) {
  const std::size_t element = SizeOf(settings_.dtype);
  encoded_.resize(raw.size() + BLOSC_MAX_OVERHEAD);
  const int n = blosc_compress_ctx(
      settings_.codec_level, element == 1 ? BLOSC_NOSHUFFLE : BLOSC_SHUFFLE, element, raw.size(),
      raw.data(), encoded_.data(), encoded_.size(), compressor, settings_.blosc_block_bytes, 1);
  if (n <= 0) return Internal("encode chunk: blosc returned ", n);
  return std::span<const std::byte>(encoded_).first(static_cast<std::size_t>(n));
}

namespace {

/// A chunk of several slices, whose rows lie at two distances.
Digest HashRows(const ConstTensorView& view, std::size_t row_bytes) {
  Sha256 hash;
  for (std::int64_t z = 0; z < view.shape[0]; ++z) {
    for (std::int64_t y = 0; y < view.shape[1]; ++y) {
      hash.Update(
          std::span(view.data + z * view.stride_bytes[0] + y * view.stride_bytes[1], row_bytes));
    }
  }
  return hash.Finish();
}

std::array<std::int64_t, 3> ShapeOf(const ConstTensorView& view) {
  return {view.shape[0], view.shape[1], view.shape[2]};
}

}  // namespace

Digest PixelHasher::Hash(const ConstTensorView& view, bool is_fill) {
  return HashEach(std::span(&view, 1), {is_fill})[0];
}

std::vector<Digest> PixelHasher::HashEach(std::span<const ConstTensorView> views,
                                          const std::vector<bool>& is_fill) {
  std::vector<Digest> digests(views.size());
  std::vector<ByteRows> items;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const ConstTensorView& view = views[i];
    const auto known = fill_digests_.find(ShapeOf(view));
    if (is_fill[i] && known != fill_digests_.end()) {
      digests[i] = known->second;
      continue;
    }
    const std::int64_t row_bytes = view.shape[2] * settings_.PixelBytes();
    if (view.shape[0] > 1) {
      digests[i] = HashRows(view, static_cast<std::size_t>(row_bytes));
      if (is_fill[i]) fill_digests_[ShapeOf(view)] = digests[i];
      continue;
    }
    ByteRows item{view.data, static_cast<std::size_t>(row_bytes), view.stride_bytes[1],
                  static_cast<std::size_t>(view.shape[1])};
    if (view.stride_bytes[1] == row_bytes) {
      item.row_bytes *= item.rows;
      item.rows = 1;
    }
    items.push_back(item);
    places.push_back(i);
  }
  const std::vector<Digest> computed = Sha256OfEach(items);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ConstTensorView& view = views[places[i]];
    digests[places[i]] = computed[i];
    if (is_fill[places[i]]) fill_digests_[ShapeOf(view)] = computed[i];
  }
  return digests;
}

}  // namespace patchbay::zarr
