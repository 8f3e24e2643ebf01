#include "workers/plots/png_file.h"

#include <csetjmp>
#include <cstddef>
#include <memory>

#include <png.h>

#include "runtime/base/strings.h"

namespace patchbay::workers {
namespace {

/// Flat colours compress best without a filter; a higher level takes ten times as long for 4 %.
constexpr int kCompressionLevel = 6;

/// What libpng writes to, and what it complains of.
struct Output {
  std::string bytes;
  std::string complaint;
};

void Append(png_structp png, png_bytep bytes, std::size_t size) {
  auto* output = static_cast<Output*>(png_get_io_ptr(png));
  output->bytes.append(reinterpret_cast<const char*>(bytes), size);
}

void Complain(png_structp png, png_const_charp text) {
  static_cast<Output*>(png_get_error_ptr(png))->complaint = text;
  png_longjmp(png, 1);
}

void IgnoreWarning(png_structp, png_const_charp) {}

/// Everything between libpng's setjmp and its jump: holds nothing that has a destructor.
bool WriteAll(png_structp png, png_infop header, const Canvas& canvas) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_compression_level(png, kCompressionLevel);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_set_IHDR(png, header, static_cast<png_uint_32>(canvas.width()),
               static_cast<png_uint_32>(canvas.height()), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, header);
  const std::uint8_t* row = canvas.pixels().data();
  for (int y = 0; y < canvas.height(); ++y) {
    png_write_row(png, row);
    row += static_cast<std::ptrdiff_t>(canvas.width()) * 3;
  }
  png_write_end(png, header);
  return true;
}

}  // namespace

StatusOr<std::string> EncodePng(const Canvas& canvas) {
  Output output;
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &output, &Complain, &IgnoreWarning);
  if (png == nullptr) return absl::InternalError("write png: libpng does not start");
  png_infop header = png_create_info_struct(png);
  png_set_write_fn(png, &output, &Append, nullptr);
  const bool written = header != nullptr && WriteAll(png, header, canvas);
  png_destroy_write_struct(&png, &header);
  if (!written) return absl::InternalError(StrCat("write png: ", output.complaint));
  return std::move(output.bytes);
}

}  // namespace patchbay::workers
