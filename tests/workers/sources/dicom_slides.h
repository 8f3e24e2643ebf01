// Crafted DICOM slides of the pattern, and what is asked of all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/crafted_dicom.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/jpeg_encoder.h"

namespace patchbay::workers {

inline constexpr std::string_view kJpegSyntax = "1.2.840.10008.1.2.4.50";
inline constexpr std::uint8_t kFill = 201;

inline StatusOr<std::unique_ptr<ImageSource>> Open(const std::string& path) {
  return OpenDicomSlide(Folders::OfThisUser(), path, ReadCaches::ForOneImage());
}

/// The pixels of a level are those of the pattern, at places of any kind.
inline void ExpectPattern(const ImageSource& image, int level = 0, std::uint32_t seed = 1) {
  const LevelLayout& layout = image.layout().levels[static_cast<std::size_t>(level)];
  const int channels = image.layout().channels;
  PatchReader reader(image);
  for (std::uint64_t n = 0; n < 12; ++n) {
    const Box box =
        n == 0 ? Box2D(0, 0, layout.size.y, layout.size.x) : RandomBox(5, n, layout, 150);
    const auto pixels = reader.Read(level, box, kFill);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    std::size_t different = 0, i = 0;
    for (std::int64_t y = box.y; y < box.y + box.height; ++y) {
      for (std::int64_t x = box.x; x < box.x + box.width; ++x) {
        const bool is_inside = y >= 0 && x >= 0 && y < layout.size.y && x < layout.size.x;
        for (int c = 0; c < channels; ++c, ++i) {
          different += (**pixels)[i] != (is_inside ? PatternAt(y, x, c, seed) : kFill);
        }
      }
    }
    ASSERT_EQ(different, 0u) << box.ToString();
  }
}

/// A level of 200 x 300 pixels of the pattern.
inline CraftedDicom Uncompressed() {
  static const std::vector<std::string> frames = PatternFrames(CraftedDicom());
  CraftedDicom dicom;
  dicom.frames = frames;
  return dicom;
}

/// A frame as a whole JPEG.
inline std::string JpegOf(const std::string& rgb, int side) {
  JpegEncoder encoder(90);
  std::vector<std::byte> image;
  EXPECT_TRUE(
      encoder.Encode({reinterpret_cast<const std::uint8_t*>(rgb.data()), side, side}, image).ok());
  std::string tables = encoder.Tables().value();
  tables.resize(tables.size() - 2);  // the end marker; the image has its own start
  return tables + std::string(reinterpret_cast<const char*>(image.data()) + 2, image.size() - 2);
}

/// The same as JPEG frames.
inline CraftedDicom Jpeg(CraftedDicom::Table table = CraftedDicom::Table::kNone) {
  static const std::vector<std::string> frames = [] {
    std::vector<std::string> made;
    for (const std::string& frame : Uncompressed().frames) made.push_back(JpegOf(frame, 64));
    return made;
  }();
  CraftedDicom dicom;
  dicom.syntax = kJpegSyntax;
  dicom.table = table;
  dicom.frames = frames;
  return dicom;
}

class DicomSlide : public testing::Test {
 protected:
  std::string Write(const std::string& name, const CraftedDicom& dicom) {
    WriteDicom(folder_.File(name), dicom);
    return folder_.File(name);
  }
  /// The reason for which a slide of one file is refused.
  std::string Refusal(const CraftedDicom& dicom) {
    const auto image = Open(Write("refused.dcm", dicom));
    EXPECT_FALSE(image.ok());
    EXPECT_THAT(Describe(image.status()), testing::Not(testing::HasSubstr("Doe")));
    return Describe(image.status());
  }

  TemporaryFolder folder_;
};

}  // namespace patchbay::workers
