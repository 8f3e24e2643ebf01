#include "workers/sources/flat_codecs.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <zlib.h>
#include <zstd.h>

#include "runtime/base/strings.h"

namespace patchbay::workers {
namespace {

Status Corrupt(const char* codec, const std::string& cause) {
  return absl::DataLossError(StrCat(codec, ": ", cause));
}

Status Short(const char* codec, std::size_t got, std::size_t wanted) {
  return Corrupt(codec, StrCat(got, " bytes of samples instead of ", wanted));
}

/// TIFF LZW: codes of 9 to 12 bits, most significant bit first, widened one code early.
class LzwReader {
 public:
  explicit LzwReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Status Decode(std::span<std::uint8_t> out) {
    if (bytes_.size() >= 2 && bytes_[0] == std::byte{0} &&
        (bytes_[1] & std::byte{1}) != std::byte{0}) {
      return Corrupt("lzw", "the bit order of TIFF 5.0 drafts, which is not read");
    }
    std::size_t done = 0;
    int previous = -1;
    while (done < out.size()) {
      const int code = Next();
      if (code < 0 || code == kEnd) return Short("lzw", done, out.size());
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
      const std::size_t length = Length(source);
      Expand(source, out.subspan(done));
      const std::uint8_t first = out[done];
      done += std::min(length, out.size() - done);
      if (is_own && done < out.size()) out[done++] = first;
      if (previous >= 0) Define(previous, first);
      previous = code;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int kClear = 256, kEnd = 257, kFirst = 258, kSize = 4096;

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

  /// Writes the string of `code`, as much of it as fits.
  void Expand(int code, std::span<std::uint8_t> out) const {
    std::size_t at = Length(code);
    while (at-- > 0) {
      const auto i = static_cast<std::size_t>(code);
      const std::uint8_t value = code < 256 ? static_cast<std::uint8_t>(code) : last_[i];
      if (at < out.size()) out[at] = value;
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
  std::size_t position_ = 0;
  std::uint32_t held_ = 0;
  int bits_held_ = 0, width_ = 9, next_ = kFirst;
  std::array<std::uint16_t, kSize> prefix_, length_;
  std::array<std::uint8_t, kSize> last_;
};

Status DecodeDeflate(std::span<const std::byte> bytes, std::span<std::uint8_t> out) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return absl::InternalError("deflate: inflateInit failed");
  // Sizes are bounded by kMaxPieceBytes and the checked size of an encoded piece.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const std::size_t got = out.size() - stream.avail_out;
  const std::string cause = stream.msg != nullptr ? stream.msg : "";
  inflateEnd(&stream);
  if (got == out.size()) return absl::OkStatus();
  if (result == Z_DATA_ERROR) return Corrupt("deflate", cause);
  return Short("deflate", got, out.size());
}

Status DecodeZstd(std::span<const std::byte> bytes, std::span<std::uint8_t> out) {
  const std::size_t got = ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got)) return Corrupt("zstd", ZSTD_getErrorName(got));
  return got == out.size() ? absl::OkStatus() : Short("zstd", got, out.size());
}

Status DecodePackBits(std::span<const std::byte> bytes, std::span<std::uint8_t> out) {
  std::size_t at = 0, done = 0;
  while (done < out.size()) {
    if (at == bytes.size()) return Short("packbits", done, out.size());
    const int n = static_cast<std::int8_t>(bytes[at++]);
    if (n == -128) continue;
    const std::size_t length = std::min<std::size_t>(n >= 0 ? n + 1 : 1 - n, out.size() - done);
    const std::size_t needed = n >= 0 ? length : 1;
    if (bytes.size() - at < needed) return Short("packbits", done, out.size());
    if (n >= 0) {
      std::memcpy(out.data() + done, bytes.data() + at, length);
    } else {
      std::memset(out.data() + done, static_cast<int>(bytes[at]), length);
    }
    at += needed;
    done += length;
  }
  return absl::OkStatus();
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

Status DecodeFlat(TiffCompression compression, std::span<const std::byte> bytes,
                  std::span<std::uint8_t> out) {
  switch (compression) {
    case TiffCompression::kNone:
      if (bytes.size() < out.size()) return Short("uncompressed", bytes.size(), out.size());
      std::memcpy(out.data(), bytes.data(), out.size());
      return absl::OkStatus();
    case TiffCompression::kLzw:
      return LzwReader(bytes).Decode(out);
    case TiffCompression::kDeflate:
    case TiffCompression::kOldDeflate:
      return DecodeDeflate(bytes, out);
    case TiffCompression::kZstd:
      return DecodeZstd(bytes, out);
    case TiffCompression::kPackBits:
      return DecodePackBits(bytes, out);
    default:
      return absl::InternalError("decode samples: not one of the flat codecs");
  }
}

void UndoHorizontalPredictor(std::span<std::uint8_t> samples, std::size_t row_bytes,
                             std::size_t step) {
  for (std::size_t row = 0; row + row_bytes <= samples.size(); row += row_bytes) {
    std::uint8_t* p = samples.data() + row;
    for (std::size_t i = step; i < row_bytes; ++i) {
      p[i] = static_cast<std::uint8_t>(p[i] + p[i - step]);
    }
  }
}

}  // namespace patchbay::workers
