#include "workers/sources/png_encoder.h"

#include <cstdint>
#include <memory>

#include <png.h>

namespace patchbay::workers {

StatusOr<std::string> EncodePng(const ConstTensorView& rgb) {
  PB_CHECK(rgb.rank == 3 && rgb.shape[2] == 3 && rgb.dtype == DType::kUint8);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(rgb.shape[0]);
  image.width = static_cast<png_uint_32>(rgb.shape[1]);
  image.format = PNG_FORMAT_RGB;
  image.flags = PNG_IMAGE_FLAG_FAST;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  const auto png = std::make_unique_for_overwrite<char[]>(bytes);
  const bool is_written =
      png_image_write_to_memory(&image, png.get(), &bytes, 0, rgb.data,
                                static_cast<png_int_32>(rgb.stride_bytes[0]), nullptr) != 0;
  if (!is_written) return Internal("write png: ", image.message);
  return std::string(png.get(), bytes);
}

}  // namespace patchbay::workers
