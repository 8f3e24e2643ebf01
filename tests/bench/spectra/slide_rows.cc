#include "tests/bench/spectra/slide_rows.h"

#include <array>
#include <cstddef>
#include <vector>

#include <openslide/openslide.h>

#include "ops/colour/grey_math.h"
#include "runtime/core/strings.h"
#include "workers/sources/image_source.h"

namespace patchbay::bench {
namespace {

class OpenSlideRows : public SlideRows {
 public:
  explicit OpenSlideRows(openslide_t* slide) : slide_(slide) {
    openslide_get_level0_dimensions(slide_, &width_, &height_);
  }
  ~OpenSlideRows() override { openslide_close(slide_); }
  std::int64_t width() const override { return width_; }
  std::int64_t height() const override { return height_; }

  Status Read(std::int64_t top, std::int64_t left, std::int64_t rows, std::int64_t columns,
              std::uint8_t* out, std::int64_t row_bytes) override {
    argb_.resize(static_cast<std::size_t>(rows * columns));
    openslide_read_region(slide_, argb_.data(), left, top, 0, columns, rows);
    if (const char* fault = openslide_get_error(slide_)) return absl::DataLossError(fault);
    for (std::int64_t y = 0; y < rows; ++y) {
      const std::uint32_t* from = argb_.data() + y * columns;
      for (std::int64_t x = 0; x < columns; ++x) {
        const std::uint32_t p = from[x];
        out[y * row_bytes + x] =
            static_cast<std::uint8_t>(ops::GreyOf((p >> 16) & 255, (p >> 8) & 255, p & 255));
      }
    }
    return absl::OkStatus();
  }

 private:
  openslide_t* slide_;
  std::int64_t width_ = 0, height_ = 0;
  std::vector<std::uint32_t> argb_;
};

class OwnRows : public SlideRows {
 public:
  explicit OwnRows(std::unique_ptr<workers::ImageSource> source)
      : source_(std::move(source)), scratch_(source_->MakeScratch()) {}
  std::int64_t width() const override { return source_->layout().levels[0].size.x; }
  std::int64_t height() const override { return source_->layout().levels[0].size.y; }

  Status Read(std::int64_t top, std::int64_t left, std::int64_t rows, std::int64_t columns,
              std::uint8_t* out, std::int64_t row_bytes) override {
    rgb_.resize(static_cast<std::size_t>(rows * columns * 3));
    PB_RETURN_IF_ERROR(source_->Fetch(0, Box2D(top, left, rows, columns), patch_));
    const auto view = ContiguousView(reinterpret_cast<std::byte*>(rgb_.data()), DType::kUint8,
                                     std::array<std::int64_t, 3>{rows, columns, 3});
    PB_RETURN_IF_ERROR(source_->Decode(patch_, view, 255, *scratch_));
    for (std::int64_t y = 0; y < rows; ++y) {
      const std::uint8_t* from = rgb_.data() + y * columns * 3;
      for (std::int64_t x = 0; x < columns; ++x) {
        out[y * row_bytes + x] =
            static_cast<std::uint8_t>(ops::GreyOf(from[3 * x], from[3 * x + 1], from[3 * x + 2]));
      }
    }
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<workers::ImageSource> source_;
  std::unique_ptr<workers::DecodeScratch> scratch_;
  workers::EncodedPatch patch_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace

StatusOr<std::unique_ptr<SlideRows>> SlideRows::Open(const std::string& slide, bool own_reader) {
  if (own_reader) {
    PB_ASSIGN_OR_RETURN(auto source, workers::OpenImage(Folders::OfThisUser(), slide));
    return std::unique_ptr<SlideRows>(new OwnRows(std::move(source)));
  }
  openslide_t* opened = openslide_open(slide.c_str());
  if (opened == nullptr || openslide_get_error(opened) != nullptr) {
    return absl::InvalidArgumentError(StrCat("open: ", slide, ": OpenSlide does not read it"));
  }
  return std::unique_ptr<SlideRows>(new OpenSlideRows(opened));
}

}  // namespace patchbay::bench
