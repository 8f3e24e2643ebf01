#include "workers/sources/webp_decoder.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <webp/decode.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

Status DamagedWebp(std::string_view cause) { return DataLoss("webp: ", cause); }

/// The image without padding behind it: "RIFF", the bytes that follow in 32 bits, "WEBP".
StatusOr<std::span<const std::byte>> ImageIn(std::span<const std::byte> bytes) {
  constexpr std::size_t kHeadBytes = 12, kCountedFrom = 8;
  if (bytes.size() < kHeadBytes || std::memcmp(bytes.data(), "RIFF", 4) != 0 ||
      std::memcmp(bytes.data() + 8, "WEBP", 4) != 0) {
    return DamagedWebp("it does not begin as an image does");
  }
  std::uint64_t size = kCountedFrom;
  for (std::size_t i = 0; i < 4; ++i) {
    size += static_cast<std::uint64_t>(bytes[4 + i]) << (8 * i);
  }
  if (size < kHeadBytes || size > bytes.size()) {
    return DamagedWebp(StrCat("cut short: ", bytes.size(), " bytes of ", size));
  }
  const auto rest = bytes.subspan(static_cast<std::size_t>(size));
  if (std::any_of(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; })) {
    return DamagedWebp(StrCat(rest.size(), " bytes after the end of the image"));
  }
  return bytes.first(static_cast<std::size_t>(size));
}

}  // namespace

StatusOr<int> DecodeWebp(std::span<const std::byte> bytes, int width, int rows_min, int rows,
                         std::span<std::uint8_t> rgb) {
  PB_ASSIGN_OR_RETURN(const auto image, ImageIn(bytes));
  const auto* data = reinterpret_cast<const std::uint8_t*>(image.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, image.size(), &features) != VP8_STATUS_OK) {
    return DamagedWebp("its header is damaged");
  }
  if (features.has_animation != 0 || features.has_alpha != 0) {
    return DamagedWebp("an image that moves or is transparent");
  }
  if (features.width != width || (features.height != rows && features.height != rows_min)) {
    return DamagedWebp(StrCat(features.width, " x ", features.height,
                              " pixels where the file states ", width, " x ", rows));
  }
  const int stride = 3 * width;
  if (WebPDecodeRGBInto(data, image.size(), rgb.data(), rgb.size(), stride) == nullptr) {
    return DamagedWebp("its pixels are damaged or cut short");
  }
  return features.height;
}

}  // namespace patchbay::workers
