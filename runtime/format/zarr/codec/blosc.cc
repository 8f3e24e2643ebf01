#include "runtime/format/zarr/codec/blosc.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <blosc.h>
#include <immintrin.h>
#include <lz4.h>
#include <zstd.h>

#include "runtime/core/strings.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kLanes = 32;

__m256i At(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
void Put(std::byte* to, __m256i lanes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), lanes);
}

/// Thirty-two elements of two bytes.
void UnshuffleLanes(const std::byte* low, const std::byte* high, std::byte* out) {
  const __m256i a = At(low), b = At(high);
  const __m256i even = _mm256_unpacklo_epi8(a, b), odd = _mm256_unpackhi_epi8(a, b);
  Put(out, _mm256_permute2x128_si256(even, odd, 0x20));
  Put(out + kLanes, _mm256_permute2x128_si256(even, odd, 0x31));
}

/// Sixteen of them, and eight.
void UnshuffleSixteen(const std::byte* low, const std::byte* high, std::byte* out) {
  const auto at = [](const std::byte* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  auto* to = reinterpret_cast<__m128i*>(out);
  _mm_storeu_si128(to, _mm_unpacklo_epi8(at(low), at(high)));
  _mm_storeu_si128(to + 1, _mm_unpackhi_epi8(at(low), at(high)));
}
void UnshuffleEight(const std::byte* low, const std::byte* high, std::byte* out) {
  const auto at = [](const std::byte* from) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  };
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_unpacklo_epi8(at(low), at(high)));
}

/// Elements of two bytes, all of them where there are eight or more; how many that were.
inline std::size_t UnshufflePairs(const std::byte* low, const std::byte* high, std::size_t count,
                                  std::byte* out) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    UnshuffleLanes(low + i, high + i, out + 2 * i);
  }
  if (i + 16 <= count) {
    UnshuffleSixteen(low + i, high + i, out + 2 * i);
    i += 16;
  }
  if (i + 8 <= count) {
    UnshuffleEight(low + i, high + i, out + 2 * i);
    i += 8;
  }
  if (i == count || count < 8) return i;
  UnshuffleEight(low + count - 8, high + count - 8, out + 2 * (count - 8));  // some of them again
  return count;
}

/// The same for elements of four bytes, whose planes lie `plane` bytes apart.
std::size_t UnshuffleFours(const std::byte* from, std::size_t plane, std::size_t count,
                           std::byte* out) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m256i a = At(from + i), b = At(from + plane + i), c = At(from + 2 * plane + i),
                  d = At(from + 3 * plane + i);
    const __m256i ab_low = _mm256_unpacklo_epi8(a, b), ab_high = _mm256_unpackhi_epi8(a, b);
    const __m256i cd_low = _mm256_unpacklo_epi8(c, d), cd_high = _mm256_unpackhi_epi8(c, d);
    const __m256i quarters[] = {
        _mm256_unpacklo_epi16(ab_low, cd_low), _mm256_unpackhi_epi16(ab_low, cd_low),
        _mm256_unpacklo_epi16(ab_high, cd_high), _mm256_unpackhi_epi16(ab_high, cd_high)};
    Put(out + 4 * i, _mm256_permute2x128_si256(quarters[0], quarters[1], 0x20));
    Put(out + 4 * i + kLanes, _mm256_permute2x128_si256(quarters[2], quarters[3], 0x20));
    Put(out + 4 * i + 2 * kLanes, _mm256_permute2x128_si256(quarters[0], quarters[1], 0x31));
    Put(out + 4 * i + 3 * kLanes, _mm256_permute2x128_si256(quarters[2], quarters[3], 0x31));
  }
  return i;
}

constexpr std::size_t kHeaderBytes = BLOSC_MIN_HEADER_LENGTH;
constexpr unsigned kByteShuffle = 0x1, kStored = 0x2, kBitShuffle = 0x4, kNotSplit = 0x10;
/// c-blosc's rule for when a block is split into one stream per byte of the type.
constexpr int kMaxSplits = 16;
constexpr std::size_t kMinSplitBytes = 128;

Status BadFrame(std::string_view cause) { return DataLoss("blosc frame: ", cause); }

Status DecodeStream(int codec, ZSTD_DCtx_s* zstd, std::span<const std::byte> from, std::byte* out,
                    std::size_t size) {
  if (from.size() == size) {
    std::memcpy(out, from.data(), size);
    return absl::OkStatus();
  }
  if (codec == 4) {
    const std::size_t n = ZSTD_decompressDCtx(zstd, out, size, from.data(), from.size());
    if (ZSTD_isError(n)) return BadFrame(StrCat("zstd: ", ZSTD_getErrorName(n)));
    if (n != size) return BadFrame(StrCat("a block of ", n, " bytes, not ", size));
    return absl::OkStatus();
  }
  const int n =
      LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()), reinterpret_cast<char*>(out),
                          static_cast<int>(from.size()), static_cast<int>(size));
  if (n != static_cast<int>(size)) return BadFrame("a corrupt lz4 block");
  return absl::OkStatus();
}

constexpr std::size_t kLengthBytes = 4;  ///< before each block, and in the list of them
constexpr std::byte kZstdNotSplit{0x90}, kStoredWhole{0x02};

constexpr int kLastQuickLevel = 3, kLastAdaptiveLevel = 6;
/// A block that is compressed to a third has repetitions, and a thorough search finds more of them.
constexpr std::size_t kRepetitiveRatio = 3;
/// A block with this ratio is blank: a search would gain too little.
constexpr std::size_t kBlankRatio = 32;

using Setting = std::pair<ZSTD_cParameter, int>;

/// Pixels of tissue seldom repeat: a small table of long matches finds the repetitions, and the
/// entropy coder does the rest. The table fits into the first-level cache.
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

/// Whether a block of `raw` bytes that was compressed to `encoded` is worth a thorough search.
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

void Unshuffle(const std::byte* planes, std::size_t elements, std::size_t element_bytes,
               std::size_t first, std::size_t count, std::byte* out) {
  const std::byte* from = planes + first;
  std::size_t i = 0;
  if (element_bytes == 2) i = UnshufflePairs(from, from + elements, count, out);
  if (element_bytes == 4) i = UnshuffleFours(from, elements, count, out);
  for (; i < count; ++i) {
    for (std::size_t b = 0; b < element_bytes; ++b) {
      out[i * element_bytes + b] = from[b * elements + i];
    }
  }
}

void UnshuffleBox(const CopyPlan& plan, const std::byte* planes, std::size_t elements,
                  std::size_t first, std::byte* out) {
  const std::size_t size = plan.element_bytes;
  const auto count = static_cast<std::size_t>(plan.shape[static_cast<std::size_t>(plan.rank - 1)]);
  const auto copy = [&](const auto& line) {
    ForEachLine(plan, [&](std::int64_t from, std::int64_t to) {
      // The lines of a box are too far apart for the processor's own prefetching: prefetch the line
      // one step further along the slowest axis.
      const std::byte* next = out + to + plan.to_stride[0];
      __builtin_prefetch(next, 1);
      __builtin_prefetch(next + count * size - 1, 1);
      line(first + static_cast<std::size_t>(from) / size, out + to);
    });
  };
  const std::byte* high = planes + elements;
  if (size == 2 && count == kLanes) {
    copy([&](std::size_t at, std::byte* to) { UnshuffleLanes(planes + at, high + at, to); });
  } else if (size == 2 && count >= 8) {
    copy([&](std::size_t at, std::byte* to) { UnshufflePairs(planes + at, high + at, count, to); });
  } else {
    copy([&](std::size_t at, std::byte* to) { Unshuffle(planes, elements, size, at, count, to); });
  }
}

StatusOr<BloscFrame> BloscFrame::Parse(std::span<const std::byte> bytes,
                                       std::size_t expected_bytes) {
  if (bytes.size() < kHeaderBytes) return BadFrame(StrCat("only ", bytes.size(), " bytes"));
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned>(bytes[i]); };
  BloscFrame f;
  if (byte_at(0) == 0 || byte_at(0) > 2) return BadFrame(StrCat("format version ", byte_at(0)));
  const unsigned flags = byte_at(2);
  f.type_bytes = static_cast<int>(byte_at(3));
  f.nbytes = Load32(bytes.data() + 4);
  f.block_bytes = Load32(bytes.data() + 8);
  const std::size_t frame_bytes = Load32(bytes.data() + 12);
  if (f.nbytes != expected_bytes) {
    return BadFrame(StrCat("holds ", f.nbytes, " bytes, the chunk has ", expected_bytes));
  }
  if (f.type_bytes == 0) return BadFrame("type size 0");
  if (frame_bytes < kHeaderBytes || frame_bytes != bytes.size()) {
    return BadFrame(StrCat("states ", frame_bytes, " bytes, has ", bytes.size()));
  }
  f.bytes = bytes.first(frame_bytes);
  if (f.block_bytes == 0 || f.block_bytes > f.nbytes) {
    if (f.nbytes != 0) return BadFrame(StrCat("block size ", f.block_bytes, " of ", f.nbytes));
    return f;
  }
  f.blocks = (f.nbytes + f.block_bytes - 1) / f.block_bytes;
  f.stored = (flags & kStored) != 0;
  f.bit_shuffled = (flags & kBitShuffle) != 0;
  f.shuffled = !f.stored && (flags & kByteShuffle) != 0 && f.type_bytes > 1;
  f.split = (flags & kNotSplit) == 0 && f.type_bytes <= kMaxSplits &&
            f.block_bytes / static_cast<std::size_t>(f.type_bytes) >= kMinSplitBytes;
  f.codec = static_cast<int>(flags >> 5);
  if (f.stored) {
    if (frame_bytes != kHeaderBytes + f.nbytes) return BadFrame("stored bytes of another size");
    return f;
  }
  if (f.codec > 4) return BadFrame(StrCat("inner codec ", f.codec));
  if (frame_bytes < kHeaderBytes + 4 * f.blocks) return BadFrame("cut inside its block table");
  if (blosc_cbuffer_validate(f.bytes.data(), f.bytes.size(), &expected_bytes) != 0) {
    return BadFrame("c-blosc refuses its header");
  }
  return f;
}

Status BloscFrame::DecodeBlock(std::size_t block, BlockScratch& scratch, std::byte* out) const {
  const std::size_t size = BlockSize(block);
  if (stored) {
    std::memcpy(out, bytes.data() + kHeaderBytes + block * block_bytes, size);
    return absl::OkStatus();
  }
  if (!shuffled) return DecodePlanes(block, scratch.zstd, out);
  scratch.planes.resize(std::max(scratch.planes.size(), block_bytes));
  PB_RETURN_IF_ERROR(DecodePlanes(block, scratch.zstd, scratch.planes.data()));
  const auto element = static_cast<std::size_t>(type_bytes);
  const std::size_t elements = size / element, whole = elements * element;
  Unshuffle(scratch.planes.data(), elements, element, 0, elements, out);
  std::memcpy(out + whole, scratch.planes.data() + whole, size - whole);
  return absl::OkStatus();
}

Status BloscFrame::DecodePlanes(std::size_t block, ZSTD_DCtx_s* zstd, std::byte* out) const {
  const std::size_t size = BlockSize(block);
  std::size_t at = Load32(bytes.data() + kHeaderBytes + 4 * block);
  const bool short_block = size < block_bytes;
  const std::size_t streams = split && !short_block ? static_cast<std::size_t>(type_bytes) : 1;
  // Every stream of a split block has the same whole size, as c-blosc encodes it.
  const std::size_t stream_bytes = size / streams;
  if (stream_bytes * streams != size) return BadFrame("a split block that does not divide");
  for (std::size_t s = 0; s < streams; ++s) {
    if (at < kHeaderBytes || at > bytes.size() || bytes.size() - at < 4) {
      return BadFrame("a block outside the frame");
    }
    const std::size_t encoded = Load32(bytes.data() + at);
    at += 4;
    if (encoded == 0 || encoded > bytes.size() - at) return BadFrame("a block outside the frame");
    PB_RETURN_IF_ERROR(DecodeStream(codec, zstd, bytes.subspan(at, encoded), out + s * stream_bytes,
                                    stream_bytes));
    at += encoded;
  }
  return absl::OkStatus();
}

Status BloscFrame::DecodeAll(BlockScratch& scratch, std::byte* out) const {
  if (nbytes == 0) return absl::OkStatus();
  if (BlockWise()) {
    for (std::size_t b = 0; b < blocks; ++b) {
      PB_RETURN_IF_ERROR(DecodeBlock(b, scratch, out + b * block_bytes));
    }
    return absl::OkStatus();
  }
  const int n = blosc_decompress_ctx(bytes.data(), out, nbytes, 1);
  if (n < 0 || static_cast<std::size_t>(n) != nbytes) {
    if (codec == 2) return Unimplemented("blosc frame: inner codec snappy");
    return BadFrame(StrCat("c-blosc returned ", n));
  }
  return absl::OkStatus();
}

Status BloscFrame::DecodeItems(std::size_t begin, std::size_t end, std::byte* out) const {
  const auto size = static_cast<std::size_t>(type_bytes);
  const int n = blosc_getitem(bytes.data(), static_cast<int>(begin / size),
                              static_cast<int>((end - begin) / size), out);
  if (n < 0 || static_cast<std::size_t>(n) != end - begin) {
    return BadFrame(StrCat("c-blosc returned ", n));
  }
  return absl::OkStatus();
}

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
  std::memcpy(out, block.data(), block.size());  // incompressible: stored raw
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
    return InvalidArgument("encode chunk: ", raw.size(), " bytes: Blosc takes 1 to ",
                           BLOSC_MAX_BUFFERSIZE);
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
