#include "workers/sources/flat_codecs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <zlib.h>
#include <zstd.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

using Samples = std::span<std::uint8_t>;

Status Corrupt(const char* codec, const std::string& cause) { return DataLoss(codec, ": ", cause); }

Status Short(const char* codec, std::size_t got, std::size_t wanted) {
  return Corrupt(codec, StrCat(got, " bytes of samples instead of ", wanted));
}

Status Long(const char* codec, std::size_t room) {
  return Corrupt(codec, StrCat("more than ", room, " bytes of samples"));
}

/// How many bytes there are before the padding: writers fill pieces up to even offsets or larger
/// blocks.
std::size_t BytesBeforePadding(std::span<const std::byte> bytes, std::byte other = std::byte{0}) {
  std::size_t n = bytes.size();
  while (n > 0 && (bytes[n - 1] == std::byte{0} || bytes[n - 1] == other)) --n;
  return n;
}

Status Trailing(const char* codec, std::size_t rest) {
  return Corrupt(codec, StrCat(rest, " bytes after the end of the samples"));
}

/// TIFF LZW: codes of 9 to 12 bits, most significant bit first, widened one code early.
class LzwReader {
 public:
  explicit LzwReader(std::span<const std::byte> bytes)
      : bytes_(bytes), content_bytes_(BytesBeforePadding(bytes)) {}

  /// Decodes up to the end code, the end of the bytes, or `least` samples followed by only an end
  /// code. Returns the number of samples.
  StatusOr<std::size_t> Decode(Samples out, std::size_t least) {
    if (bytes_.size() >= 2 && bytes_[0] == std::byte{0} &&
        (bytes_[1] & std::byte{1}) != std::byte{0}) {
      return Corrupt("lzw", "the bit order of TIFF 5.0 drafts is not supported");
    }
    std::size_t done = 0;
    int previous = -1;
    while (done < out.size() && !(done == least && OnlyAnEndIsLeft())) {
      const int code = Next();
      if (code < 0 || code == kEnd) break;
      if (code == kClear) {
        Clear();
        previous = -1;
        continue;
      }
      if (previous < 0 ? code > 255 : code > next_) {
        return Corrupt("lzw", StrCat("code ", code, " before it is defined"));
      }
      const bool is_own = previous >= 0 && code == next_;
      const int source = is_own ? previous : code;
      if (Length(source) + (is_own ? 1 : 0) > out.size() - done) return Long("lzw", out.size());
      Expand(source, out.subspan(done));
      const std::uint8_t first = out[done];
      done += Length(source);
      if (is_own) out[done++] = first;
      if (previous >= 0) Define(previous, first);
      previous = code;
    }
    if (!OnlyAnEndIsLeft()) return Trailing("lzw", content_bytes_ - position_);
    return done;
  }

 private:
  static constexpr int kClear = 256, kEnd = 257, kFirst = 258, kSize = 4096;
  static constexpr std::size_t kEndBytes = 4;

  /// Writers disagree about the width of the end code, so its bits are not looked at: they and a
  /// clear code before them take four bytes at most.
  bool OnlyAnEndIsLeft() const { return content_bytes_ <= position_ + kEndBytes; }

  int Next() {
    while (bits_held_ < width_) {
      if (position_ == bytes_.size()) return -1;
      held_ = (held_ << 8) | static_cast<std::uint32_t>(bytes_[position_++]);
      bits_held_ += 8;
    }
    bits_held_ -= width_;
    return static_cast<int>((held_ >> bits_held_) & ((1u << width_) - 1));
  }

  void Clear() {
    next_ = kFirst;
    width_ = 9;
  }

  std::size_t Length(int code) const {
    return code < 256 ? 1 : length_[static_cast<std::size_t>(code)];
  }

  /// Writes the string of `code`, which fits.
  void Expand(int code, Samples out) const {
    std::size_t at = Length(code);
    while (at-- > 0) {
      const auto i = static_cast<std::size_t>(code);
      out[at] = code < 256 ? static_cast<std::uint8_t>(code) : last_[i];
      if (code >= 256) code = prefix_[i];
    }
  }

  void Define(int prefix, std::uint8_t last) {
    if (next_ >= kSize) return;
    const auto i = static_cast<std::size_t>(next_);
    prefix_[i] = static_cast<std::uint16_t>(prefix);
    last_[i] = last;
    length_[i] = static_cast<std::uint16_t>(Length(prefix) + 1);
    ++next_;
    if (width_ < 12 && next_ + 1 >= (1 << width_)) ++width_;
  }

  std::span<const std::byte> bytes_;
  const std::size_t content_bytes_;
  std::size_t position_ = 0;
  std::uint32_t held_ = 0;
  int bits_held_ = 0, width_ = 9, next_ = kFirst;
  std::array<std::uint16_t, kSize> prefix_, length_;
  std::array<std::uint8_t, kSize> last_;
};

/// The whole stream, so that its Adler-32 is compared.
StatusOr<std::size_t> DecodeDeflate(std::span<const std::byte> bytes, Samples out) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return Internal("deflate: inflateInit failed");
  // Sizes are bounded by kMaxPieceBytes and the checked size of an encoded piece.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const std::size_t got = out.size() - stream.avail_out;
  const std::string cause = stream.msg != nullptr ? stream.msg : "";
  inflateEnd(&stream);
  if (result == Z_STREAM_END) {
    const std::size_t rest = BytesBeforePadding(bytes.last(stream.avail_in));
    return rest == 0 ? StatusOr<std::size_t>(got) : Trailing("deflate", rest);
  }
  if (result != Z_BUF_ERROR) return Corrupt("deflate", cause.empty() ? "damaged" : cause);
  if (stream.avail_in > 0) return Long("deflate", out.size());
  return Corrupt("deflate", StrCat("cut short after ", got, " bytes of samples"));
}

StatusOr<std::size_t> DecodeZstd(std::span<const std::byte> bytes, Samples out) {
  const std::size_t frame = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
  if (ZSTD_isError(frame)) return Corrupt("zstd", ZSTD_getErrorName(frame));
  if (const std::size_t rest = BytesBeforePadding(bytes.subspan(frame)); rest > 0) {
    return Trailing("zstd", rest);
  }
  const std::size_t got = ZSTD_decompress(out.data(), out.size(), bytes.data(), frame);
  if (ZSTD_isError(got)) return Corrupt("zstd", ZSTD_getErrorName(got));
  return got;
}

/// PackBits has no end: a piece ends with its bytes, or with `least` samples and padding.
StatusOr<std::size_t> DecodePackBits(std::span<const std::byte> bytes, Samples out,
                                     std::size_t least) {
  constexpr std::byte kNothing{0x80};
  const std::size_t content = BytesBeforePadding(bytes, kNothing);
  std::size_t at = 0, done = 0;
  while (at < bytes.size() && !(done >= least && at >= content)) {
    const int n = static_cast<std::int8_t>(bytes[at++]);
    if (n == -128) continue;
    const auto length = static_cast<std::size_t>(n >= 0 ? n + 1 : 1 - n);
    if (length > out.size() - done) return Long("packbits", out.size());
    const std::size_t needed = n >= 0 ? length : 1;
    if (bytes.size() - at < needed) return Corrupt("packbits", "cut inside a run");
    if (n >= 0) {
      std::memcpy(out.data() + done, bytes.data() + at, length);
    } else {
      std::memset(out.data() + done, static_cast<int>(bytes[at]), length);
    }
    at += needed;
    done += length;
  }
  return done;
}

/// Uncompressed bytes have no end mark: bytes beyond the samples are not looked at.
StatusOr<std::size_t> CopyPlain(std::span<const std::byte> bytes, Samples out, std::size_t least) {
  if (bytes.size() < least) return Short("uncompressed", bytes.size(), least);
  std::memcpy(out.data(), bytes.data(), least);
  return least;
}

StatusOr<std::size_t> DecodeAll(TiffCompression compression, std::span<const std::byte> bytes,
                                Samples out, std::size_t least) {
  switch (compression) {
    case TiffCompression::kNone:
      return CopyPlain(bytes, out, least);
    case TiffCompression::kLzw:
      return LzwReader(bytes).Decode(out, least);
    case TiffCompression::kDeflate:
    case TiffCompression::kOldDeflate:
      return DecodeDeflate(bytes, out);
    case TiffCompression::kZstd:
      return DecodeZstd(bytes, out);
    case TiffCompression::kPackBits:
      return DecodePackBits(bytes, out, least);
    default:
      return Internal("decode samples: not one of the flat codecs");
  }
}

/// Sums of differences between 16-bit samples that are `step` apart.
void AddUp16(std::uint8_t* row, std::size_t count, std::size_t step) {
  for (std::size_t i = step; i < count; ++i) {
    std::uint16_t sample = 0, before = 0;
    std::memcpy(&sample, row + 2 * i, 2);
    std::memcpy(&before, row + 2 * (i - step), 2);
    sample = static_cast<std::uint16_t>(sample + before);
    std::memcpy(row + 2 * i, &sample, 2);
  }
}

}  // namespace

bool IsFlat(TiffCompression compression) {
  switch (compression) {
    case TiffCompression::kNone:
    case TiffCompression::kLzw:
    case TiffCompression::kDeflate:
    case TiffCompression::kOldDeflate:
    case TiffCompression::kPackBits:
    case TiffCompression::kZstd:
      return true;
    default:
      return false;
  }
}

Status DecodeFlat(TiffCompression compression, std::span<const std::byte> bytes, Samples out,
                  std::size_t least) {
  PB_ASSIGN_OR_RETURN(const std::size_t got, DecodeAll(compression, bytes, out, least));
  if (got == least || got == out.size()) return absl::OkStatus();
  return DataLoss("a piece of ", got, " bytes of samples instead of ", least);
}

void UndoHorizontalPredictor(std::span<std::uint8_t> samples, std::size_t row_bytes,
                             std::size_t step, std::size_t sample_bytes) {
  for (std::size_t row = 0; row + row_bytes <= samples.size(); row += row_bytes) {
    std::uint8_t* p = samples.data() + row;
    if (sample_bytes == 2) {
      AddUp16(p, row_bytes / 2, step);
      continue;
    }
    for (std::size_t i = step; i < row_bytes; ++i) {
      p[i] = static_cast<std::uint8_t>(p[i] + p[i - step]);
    }
  }
}

void SwapSamples(std::span<std::uint8_t> samples) {
  for (std::size_t i = 0; i + 1 < samples.size(); i += 2) std::swap(samples[i], samples[i + 1]);
}

}  // namespace patchbay::workers
