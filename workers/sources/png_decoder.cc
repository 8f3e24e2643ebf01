#include "workers/sources/png_decoder.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

/// Beyond pixels, for profiles and texts, which are not kept.
constexpr png_alloc_size_t kMaxChunkBytes = png_alloc_size_t{8} << 20;

/// The bytes that libpng reads on, and its last error.
struct PngInput {
  std::span<const std::byte> left;
  char message[128] = "";
};

void ReadOn(png_structp png, png_bytep out, std::size_t size) {
  auto* reader = static_cast<PngInput*>(png_get_io_ptr(png));
  if (size > reader->left.size()) png_error(png, "it ends too early");
  std::memcpy(out, reader->left.data(), size);
  reader->left = reader->left.subspan(size);
}

[[noreturn]] void OnError(png_structp png, png_const_charp text) {
  auto* reader = static_cast<PngInput*>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof reader->message, "%s", text);
  std::longjmp(*png_set_longjmp_fn(png, std::longjmp, sizeof(jmp_buf)), 1);
}

void OnWarning(png_structp, png_const_charp) {}

/// libpng's two structures of one picture.
class Png {
 public:
  explicit Png(std::span<const std::byte> bytes) : reader_{.left = bytes} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader_, OnError, OnWarning);
    info_ = png_create_info_struct(png_);
    png_set_read_fn(png_, &reader_, ReadOn);
    png_set_chunk_malloc_max(png_, kMaxChunkBytes);
  }
  ~Png() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  /// DataLoss for an error of libpng.
  Status Open() {
    if (png_ == nullptr || info_ == nullptr) return absl::ResourceExhaustedError("png: no memory");
    if (setjmp(*png_set_longjmp_fn(png_, std::longjmp, sizeof(jmp_buf))) != 0) return Damaged();
    png_read_info(png_, info_);
    return absl::OkStatus();
  }

  StatusOr<PngHeader> Header() const {
    const int type = png_get_color_type(png_, info_);
    if (png_get_bit_depth(png_, info_) > 8) return Unimplemented("16 bits a sample");
    if ((type & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png_, info_, PNG_INFO_tRNS) != 0) {
      return Unimplemented("transparent pixels: save it without an alpha channel");
    }
    return PngHeader{static_cast<std::int64_t>(png_get_image_height(png_, info_)),
                     static_cast<std::int64_t>(png_get_image_width(png_, info_)),
                     (type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1};
  }

  /// `rows`: one address for each row.
  Status ReadPixels(std::uint8_t** rows) {
    if (setjmp(*png_set_longjmp_fn(png_, std::longjmp, sizeof(jmp_buf))) != 0) return Damaged();
    png_set_expand(png_);
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return absl::OkStatus();
  }

 private:
  Status Damaged() const { return DataLoss("png: ", reader_.message); }

  PngInput reader_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

StatusOr<PngHeader> ReadPngHeader(std::span<const std::byte> bytes) {
  Png png(bytes);
  PB_RETURN_IF_ERROR(png.Open());
  return png.Header();
}

Status DecodePng(std::span<const std::byte> bytes, const PngHeader& expected,
                 std::vector<std::uint8_t>& out) {
  Png png(bytes);
  PB_RETURN_IF_ERROR(png.Open());
  PB_ASSIGN_OR_RETURN(const PngHeader header, png.Header());
  const bool is_expected = header.height == expected.height && header.width == expected.width &&
                           header.channels == expected.channels;
  if (!is_expected) return DataLoss("png: its header changed");
  const auto stride = static_cast<std::size_t>(header.width * header.channels);
  out.resize(stride * static_cast<std::size_t>(header.height));
  std::vector<std::uint8_t*> rows;
  for (std::int64_t y = 0; y < header.height; ++y) {
    rows.push_back(out.data() + static_cast<std::size_t>(y) * stride);
  }
  return png.ReadPixels(rows.data());
}

}  // namespace patchbay::workers
