#include "runtime/zarr/chunk_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <blosc.h>
#include <zstd.h>

#include "runtime/base/strings.h"

namespace patchbay::zarr {
namespace {

/// A Blosc frame of zstd blocks that are neither shuffled nor split, of elements of one byte.
constexpr std::array<std::byte, 4> kBloscZstdHeader = {std::byte{BLOSC_VERSION_FORMAT},
                                                       std::byte{BLOSC_ZSTD_VERSION_FORMAT},
                                                       std::byte{0x90}, std::byte{1}};
constexpr std::size_t kBloscHeaderBytes = BLOSC_MIN_HEADER_LENGTH;
constexpr std::size_t kBloscLengthBytes = 4;  ///< before each block, and in the list of them

constexpr std::size_t kBloscSmallestBytes = 4096;  ///< below, c-blosc may decide otherwise

/// The zstd level that c-blosc takes for its own.
int ZstdLevelOfBlosc(int level) { return level < 9 ? 2 * level - 1 : ZSTD_maxCLevel(); }

void PutLength(std::byte* at, std::size_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  std::memcpy(at, &word, sizeof word);
}

}  // namespace

ChunkEncoder::ChunkEncoder(const ImageStoreSettings& settings)
    : settings_(settings),
      zstd_(settings.codec == StoreCodec::kBloscLz4 ? nullptr : ZSTD_createCCtx()) {}

ChunkEncoder::~ChunkEncoder() { ZSTD_freeCCtx(zstd_); }

Status ChunkEncoder::Append(std::span<const std::byte> raw, std::vector<std::byte>& out) {
  if (settings_.codec == StoreCodec::kZstd) {
    PB_RETURN_IF_ERROR(EncodeZstd(raw));
  } else if (settings_.codec != StoreCodec::kBloscZstd || !EncodeBloscZstd(raw)) {
    PB_RETURN_IF_ERROR(EncodeBlosc(raw));
  }
  out.insert(out.end(), encoded_.data(), encoded_.data() + encoded_bytes_);
  return absl::OkStatus();
}

Status ChunkEncoder::EncodeZstd(std::span<const std::byte> raw) {
  encoded_.resize(ZSTD_compressBound(raw.size()));
  encoded_bytes_ = ZSTD_compressCCtx(zstd_, encoded_.data(), encoded_.size(), raw.data(),
                                     raw.size(), settings_.codec_level);
  if (!ZSTD_isError(encoded_bytes_)) return absl::OkStatus();
  return absl::InternalError(StrCat("encode chunk: zstd: ", ZSTD_getErrorName(encoded_bytes_)));
}

Status ChunkEncoder::EncodeBlosc(std::span<const std::byte> raw) {
  encoded_.resize(raw.size() + BLOSC_MAX_OVERHEAD);
  const char* inner = settings_.codec == StoreCodec::kBloscLz4 ? "lz4" : "zstd";
  const int n =
      blosc_compress_ctx(settings_.codec_level, BLOSC_NOSHUFFLE, 1, raw.size(), raw.data(),
                         encoded_.data(), encoded_.size(), inner, settings_.blosc_block_bytes, 1);
  if (n <= 0) return absl::InternalError(StrCat("encode chunk: blosc returned ", n));
  encoded_bytes_ = static_cast<std::size_t>(n);
  return absl::OkStatus();
}

/// The bytes that blosc_compress_ctx gives, without a fresh zstd context for every block. False,
/// for what does not compress: c-blosc knows what to do with it.
bool ChunkEncoder::EncodeBloscZstd(std::span<const std::byte> raw) {
  encoded_.resize(raw.size() + BLOSC_MAX_OVERHEAD);
  if (raw.size() < kBloscSmallestBytes) return false;
  const std::size_t block_bytes = std::min<std::size_t>(settings_.blosc_block_bytes, raw.size());
  const std::size_t blocks = (raw.size() + block_bytes - 1) / block_bytes;
  std::size_t at = kBloscHeaderBytes + blocks * kBloscLengthBytes;
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto part =
        raw.subspan(block * block_bytes, std::min(block_bytes, raw.size() - block * block_bytes));
    PutLength(encoded_.data() + kBloscHeaderBytes + block * kBloscLengthBytes, at);
    at += kBloscLengthBytes;
    if (at + part.size() > encoded_.size()) return false;
    const std::size_t n = ZSTD_compressCCtx(zstd_, encoded_.data() + at, part.size(), part.data(),
                                            part.size(), ZstdLevelOfBlosc(settings_.codec_level));
    if (ZSTD_isError(n) || n >= part.size()) return false;
    PutLength(encoded_.data() + at - kBloscLengthBytes, n);
    at += n;
  }
  std::copy(kBloscZstdHeader.begin(), kBloscZstdHeader.end(), encoded_.begin());
  PutLength(encoded_.data() + 4, raw.size());
  PutLength(encoded_.data() + 8, block_bytes);
  PutLength(encoded_.data() + 12, at);
  encoded_bytes_ = at;
  return true;
}

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
    const auto known = fill_digests_.find({view.shape[0], view.shape[1]});
    if (is_fill[i] && known != fill_digests_.end()) {
      digests[i] = known->second;
      continue;
    }
    const std::int64_t row_bytes =
        view.shape[1] * view.shape[2] * static_cast<std::int64_t>(SizeOf(settings_.dtype));
    ByteRows item{view.data, static_cast<std::size_t>(row_bytes), view.stride_bytes[0],
                  static_cast<std::size_t>(view.shape[0])};
    if (view.stride_bytes[0] == row_bytes) {
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
    if (is_fill[places[i]]) fill_digests_[{view.shape[0], view.shape[1]}] = computed[i];
  }
  return digests;
}

}  // namespace patchbay::zarr
