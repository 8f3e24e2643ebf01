#include "workers/sources/jpeg_header.h"

#include <array>
#include <optional>
#include <string_view>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr int kStartOfScan = 0xDA;
constexpr int kEndOfImage = 0xD9;
constexpr int kJfif = 0xE0, kExif = 0xE1, kAdobe = 0xEE;
constexpr std::size_t kExifMark = 6;  ///< "Exif", 0, 0
constexpr std::uint32_t kOrientationTag = 0x0112;

/// ITU T.81, table B.1: SOF0 to SOF15 without DHT, JPG and DAC.
bool StartsFrame(int marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

/// Numbers of one byte order; reading beyond the end gives 0.
class Numbers {
 public:
  Numbers(std::string_view bytes, bool is_little) : bytes_(bytes), is_little_(is_little) {}

  std::uint32_t At(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t from = is_little_ ? at + size - 1 - i : at + i;
      value = value << 8 | static_cast<std::uint8_t>(bytes_[from]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool is_little_;
};

/// 1 to 8 of the first directory of an EXIF segment; 1 (upright) where it states none.
std::uint32_t OrientationOf(std::string_view tiff) {
  const Numbers numbers(tiff, tiff.starts_with("II"));
  const std::size_t directory = numbers.At(4, 4);
  const std::size_t count = numbers.At(directory, 2);
  for (std::size_t i = 0; i < count && directory + 2 + 12 * i < tiff.size(); ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (numbers.At(entry, 2) == kOrientationTag) return numbers.At(entry + 8, 2);
  }
  return 1;
}

/// The colours by the segments before the frame.
struct Words {
  bool has_jfif = false;
  std::optional<int> adobe_transform;
};

Status ReadSegment(int marker, std::string_view body, Words& words) {
  using namespace std::string_view_literals;
  if (marker == kJfif && body.starts_with("JFIF\0"sv)) words.has_jfif = true;
  if (marker == kAdobe && body.starts_with("Adobe") && body.size() >= 12) {
    words.adobe_transform = static_cast<std::uint8_t>(body[11]);
  }
  if (marker == kExif && body.starts_with("Exif\0\0"sv)) {
    const std::uint32_t orientation = OrientationOf(body.substr(kExifMark));
    if (orientation > 1) {
      return Unimplemented("its EXIF orientation ", orientation,
                           " turns or mirrors it: save it upright");
    }
  }
  return absl::OkStatus();
}

StatusOr<JpegHeader> FrameOf(std::string_view body, const Words& words) {
  const Numbers numbers(body, false);
  const JpegHeader header{numbers.At(1, 2), numbers.At(3, 2), static_cast<int>(numbers.At(5, 1))};
  if (numbers.At(0, 1) != 8) return Unimplemented(numbers.At(0, 1), " bits a sample");
  if (header.components != 1 && header.components != 3) {
    return Unimplemented(header.components, " components (CMYK has 4)");
  }
  if (header.height == 0 || header.width == 0) return DataLoss("jpeg: it states no size");
  const std::array<std::uint32_t, 3> ids = {numbers.At(6, 1), numbers.At(9, 1), numbers.At(12, 1)};
  const bool names_rgb = ids == std::array<std::uint32_t, 3>{'R', 'G', 'B'};
  JpegHeader out = header;
  out.is_ycbcr =
      words.has_jfif || (words.adobe_transform ? *words.adobe_transform != 0 : !names_rgb);
  return out;
}

}  // namespace

StatusOr<JpegHeader> ReadJpegHeader(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Numbers numbers(text, false);
  Words words;
  std::size_t at = 2;
  while (at + 4 <= text.size()) {
    const auto marker = static_cast<int>(numbers.At(at + 1, 1));
    if (numbers.At(at, 1) != 0xFF || marker == kStartOfScan || marker == kEndOfImage) break;
    if (marker == 0xFF) {  // padding
      ++at;
      continue;
    }
    const std::size_t length = numbers.At(at + 2, 2);
    if (length < 2 || length > text.size() - at - 2) break;
    const std::string_view body = text.substr(at + 4, length - 2);
    if (StartsFrame(marker)) return FrameOf(body, words);
    PB_RETURN_IF_ERROR(ReadSegment(marker, body, words));
    at += 2 + length;
  }
  return DataLoss("jpeg: no frame header");
}

}  // namespace patchbay::workers
