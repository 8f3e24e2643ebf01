#include "runtime/format/zarr/codec/blosc_zstd_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <blosc.h>
#include <zstd.h>

#include "runtime/core/strings.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kHeaderBytes = BLOSC_MIN_HEADER_LENGTH;
constexpr std::size_t kLengthBytes = 4;  ///< before each block, and in the list of them
constexpr std::byte kZstdNotSplit{0x90}, kStoredWhole{0x02};

constexpr int kLastQuickLevel = 3, kLastAdaptiveLevel = 6;
/// A block that comes down to a third has repetitions, and a thorough search finds more of them.
constexpr std::size_t kRepetitiveRatio = 3;
/// One that comes down to this is blank: too little of it is left for a search to be worth its
/// time.
constexpr std::size_t kBlankRatio = 32;

using Setting = std::pair<ZSTD_cParameter, int>;

/// Pixels of tissue seldom repeat: a small table of long matches finds what there is, and the
/// entropy coder does the rest. The table fits into the first cache.
constexpr std::array<Setting, 5> kQuickSearch = {{{ZSTD_c_strategy, ZSTD_dfast},
                                                  {ZSTD_c_hashLog, 11},
                                                  {ZSTD_c_chainLog, 11},
                                                  {ZSTD_c_searchLog, 1},
                                                  {ZSTD_c_minMatch, 6}}};
/// Background, markings and drawn images. Two equal pixels are the shortest match worth having.
constexpr std::array<Setting, 5> kThoroughSearch = {{{ZSTD_c_strategy, ZSTD_lazy},
                                                     {ZSTD_c_hashLog, 17},
                                                     {ZSTD_c_chainLog, 16},
                                                     {ZSTD_c_searchLog, 5},
                                                     {ZSTD_c_minMatch, 6}}};

/// Whether a block of `raw` bytes that came down to `encoded` deserves a thorough search.
bool IsRepetitive(std::size_t raw, std::size_t encoded) {
  return encoded * kRepetitiveRatio <= raw && encoded * kBlankRatio > raw;
}

/// The zstd level that c-blosc takes for its own.
int ZstdLevelOfBlosc(int level) { return level < 9 ? 2 * level - 1 : ZSTD_maxCLevel(); }

void Configure(ZSTD_CCtx* context, std::span<const Setting> settings) {
  for (const auto& [name, value] : settings) {
    PB_CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, name, value)) == 0);
  }
}

void Put32(std::byte* at, std::size_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  std::memcpy(at, &word, sizeof word);
}

void PutHeader(std::byte* at, std::byte flags, std::size_t raw_bytes, std::size_t block_bytes,
               std::size_t frame_bytes) {
  at[0] = std::byte{BLOSC_VERSION_FORMAT};
  at[1] = std::byte{BLOSC_ZSTD_VERSION_FORMAT};
  at[2] = flags;
  at[3] = std::byte{1};  // bytes of an element
  Put32(at + 4, raw_bytes);
  Put32(at + 8, block_bytes);
  Put32(at + 12, frame_bytes);
}

}  // namespace

void BloscZstdEncoder::FreeContext::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

BloscZstdEncoder::BloscZstdEncoder(int level, std::uint32_t block_bytes)
    : block_bytes_(block_bytes),
      is_adaptive_(level > kLastQuickLevel && level <= kLastAdaptiveLevel) {
  if (level <= kLastAdaptiveLevel) {
    quick_.reset(ZSTD_createCCtx());
    Configure(quick_.get(), kQuickSearch);
  }
  if (level > kLastQuickLevel) {
    thorough_.reset(ZSTD_createCCtx());
    const Setting as_blosc{ZSTD_c_compressionLevel, ZstdLevelOfBlosc(level)};
    Configure(thorough_.get(), is_adaptive_ ? std::span<const Setting>(kThoroughSearch)
                                            : std::span<const Setting>(&as_blosc, 1));
  }
}

BloscZstdEncoder::~BloscZstdEncoder() = default;

std::size_t BloscZstdEncoder::EncodeBlock(ZSTD_CCtx_s* zstd, std::span<const std::byte> block,
                                          std::byte* out) {
  const std::size_t n = ZSTD_compress2(zstd, out, block.size() - 1, block.data(), block.size());
  if (ZSTD_isError(n) == 0) return n;
  std::memcpy(out, block.data(), block.size());  // it does not fit: a block of its own size is raw
  return block.size();
}

/// The blocks and their list, from the header's end on; the frame's bytes so far.
std::size_t BloscZstdEncoder::EncodeBlocks(std::span<const std::byte> raw,
                                           std::size_t block_bytes) {
  const std::size_t blocks = (raw.size() + block_bytes - 1) / block_bytes;
  frame_.resize(kHeaderBytes + blocks * 2 * kLengthBytes + raw.size());
  std::size_t at = kHeaderBytes + blocks * kLengthBytes;
  bool is_repetitive = quick_ == nullptr;
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t begin = i * block_bytes;
    const auto block = raw.subspan(begin, std::min(block_bytes, raw.size() - begin));
    Put32(frame_.data() + kHeaderBytes + i * kLengthBytes, at);
    std::byte* out = frame_.data() + at + kLengthBytes;
    std::size_t n = 0;
    if (!is_repetitive) {
      n = EncodeBlock(quick_.get(), block, out);
      is_repetitive = is_adaptive_ && IsRepetitive(block.size(), n);
    }
    if (is_repetitive) {
      n = EncodeBlock(thorough_.get(), block, out);
      // The next one is likely to be the same.
      is_repetitive = !is_adaptive_ || IsRepetitive(block.size(), n);
    }
    Put32(frame_.data() + at, n);
    at += kLengthBytes + n;
  }
  return at;
}

std::size_t BloscZstdEncoder::Store(std::span<const std::byte> raw) {
  frame_.resize(std::max(frame_.size(), kHeaderBytes + raw.size()));
  std::memcpy(frame_.data() + kHeaderBytes, raw.data(), raw.size());
  return kHeaderBytes + raw.size();
}

StatusOr<std::span<const std::byte>> BloscZstdEncoder::Encode(std::span<const std::byte> raw) {
  if (raw.empty() || raw.size() > BLOSC_MAX_BUFFERSIZE) {
    return absl::InvalidArgumentError(
        StrCat("encode chunk: ", raw.size(), " bytes: Blosc takes 1 to ", BLOSC_MAX_BUFFERSIZE));
  }
  const std::size_t block_bytes = std::min(block_bytes_, raw.size());
  std::size_t size = EncodeBlocks(raw, block_bytes);
  const bool is_stored = size >= kHeaderBytes + raw.size();
  if (is_stored) size = Store(raw);
  PutHeader(frame_.data(), is_stored ? kZstdNotSplit | kStoredWhole : kZstdNotSplit, raw.size(),
            block_bytes, size);
  return std::span<const std::byte>(frame_).first(size);
}

}  // namespace patchbay::zarr
