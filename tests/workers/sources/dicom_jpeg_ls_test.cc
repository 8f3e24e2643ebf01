// JPEG-LS tiles of DICOM slides: without loss the pixels that were written, with loss those of
// imagecodecs.
#include <algorithm>
#include <fstream>
#include <iterator>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcpixel.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmjpls/djencode.h>
#include <dcmtk/dcmjpls/djrparam.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/dicom_slides.h"
#include "tests/workers/sources/python_oracle.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kJpegLsSyntax = "1.2.840.10008.1.2.4.80";
constexpr std::string_view kLossyJpegLs = "1.2.840.10008.1.2.4.81";

/// A frame as lossless JPEG-LS, by DCMTK.
std::string JpegLsOf(const std::string& samples, const CraftedDicom& dicom) {
  DJLSEncoderRegistration::registerCodecs(0, 0, 0, 0, OFFalse);
  DcmDataset set;
  const std::pair<Uint16, std::uint32_t> shorts[] = {{0x0002, dicom.samples},
                                                     {0x0006, 0},
                                                     {0x0010, dicom.tile},
                                                     {0x0011, dicom.tile},
                                                     {0x0100, 8},
                                                     {0x0101, 8},
                                                     {0x0102, 7},
                                                     {0x0103, 0}};
  for (const auto& [number, value] : shorts) {
    const DcmTag tag(0x0028, number, EVR_US);
    EXPECT_TRUE(set.putAndInsertUint16(tag, static_cast<Uint16>(value)).good());
  }
  const char* photometric = dicom.samples == 1 ? "MONOCHROME2" : "RGB";
  EXPECT_TRUE(set.putAndInsertString(DcmTag(0x0028, 0x0004, EVR_CS), photometric).good());
  std::string even = samples + std::string(samples.size() % 2, '\0');
  auto* values = new DcmPixelData(DcmTag(DCM_PixelData, EVR_OB));
  EXPECT_TRUE(
      values->putUint8Array(reinterpret_cast<const Uint8*>(even.data()), even.size()).good());
  EXPECT_TRUE(set.insert(values).good());
  const E_TransferSyntax syntax = EXS_JPEGLSLossless;
  const DJLSRepresentationParameter parameter(0, OFTrue);
  EXPECT_TRUE(set.chooseRepresentation(syntax, &parameter).good());
  DcmPixelSequence* sequence = nullptr;
  DcmPixelItem* item = nullptr;
  Uint8* bytes = nullptr;
  EXPECT_TRUE(values->getEncapsulatedRepresentation(syntax, &parameter, sequence).good());
  EXPECT_TRUE(sequence->getItem(item, 1).good() && item->getUint8Array(bytes).good());
  return {reinterpret_cast<const char*>(bytes), item->getLength()};
}

TEST_F(DicomSlide, LosslessJpegLsTilesHoldThePixelsThatWereWritten) {
  CraftedDicom grey;
  grey.samples = 1;
  grey.photometric = "MONOCHROME2";
  grey.tile = 65;  // frames of odd length
  grey.frames = PatternFrames(grey);
  for (CraftedDicom dicom : {Uncompressed(), grey}) {
    dicom.syntax = kJpegLsSyntax;
    for (std::string& frame : dicom.frames) frame = JpegLsOf(frame, dicom);
    const auto image = Open(Write("a.dcm", dicom));
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    ExpectPattern(**image);
    const auto kept = (*image)->TilesOf(0);
    EXPECT_THAT(Describe(kept.status()), testing::HasSubstr("tiles of compression JPEG-LS"));
  }
}

TEST_F(DicomSlide, JpegLsTilesWithLossAreThoseOfAnotherDecoder) {
  if (!HasPackages("numpy, imagecodecs")) GTEST_SKIP() << "no Python with imagecodecs";
  CraftedDicom dicom = Uncompressed();
  dicom.syntax = kLossyJpegLs;
  for (std::size_t i = 0; i < dicom.frames.size(); ++i) {
    std::ofstream(folder_.File(StrCat(i, ".raw")), std::ios::binary) << dicom.frames[i];
  }
  const std::string arguments = StrCat(folder_.path(), " ", dicom.frames.size(), " 64 3");
  ASSERT_TRUE(RunScript("jpeg_ls_oracle.py", arguments));
  const auto content = [&](std::size_t i, const char* ending) {
    std::ifstream file(folder_.File(StrCat(i, ending)), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < dicom.frames.size(); ++i) {
    dicom.frames[i] = content(i, ".jls");
    expected.push_back(content(i, ".decoded"));
    ASSERT_NE(expected.back(), content(i, ".raw")) << "nothing was lost";
  }
  const auto image = Open(Write("a.dcm", dicom));
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  PatchReader reader(**image);
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t column = 0; column < 4; ++column) {
      const auto pixels = reader.Read(0, Box2D(64 * row, 64 * column, 64, 64), kFill);
      ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
      const std::string& frame = expected[static_cast<std::size_t>(5 * row + column)];
      EXPECT_TRUE(
          std::equal(frame.begin(), frame.end(), (*pixels)->begin(), (*pixels)->end(),
                     [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }))
          << row << ", " << column;
    }
  }
}

TEST_F(DicomSlide, DamagedJpegLsTilesAreRefused) {
  CraftedDicom dicom = Uncompressed();
  dicom.syntax = kJpegLsSyntax;
  for (std::string& frame : dicom.frames) frame = JpegLsOf(frame, dicom);
  const auto read = [&](const std::string& frame, std::string_view syntax = kJpegLsSyntax) {
    CraftedDicom one = dicom;
    one.syntax = syntax;
    one.frames[6] = frame;
    const auto image = Open(Write("a.dcm", one));
    EXPECT_TRUE(image.ok()) << Describe(image.status());
    PatchReader reader(**image);
    const Status status = reader.Read(0, Box2D(64, 64, 8, 8), kFill).status();
    return status.ok() ? std::string() : Describe(status);
  };
  const std::string& whole = dicom.frames[6];
  EXPECT_EQ(read(whole), "");
  EXPECT_THAT(read(whole.substr(0, whole.size() / 2)), testing::HasSubstr("row 1 column 1"));
  EXPECT_NE(read(whole + "xy"), "");
  CraftedDicom grey = dicom;
  grey.samples = 1;
  EXPECT_THAT(
      read(JpegLsOf(std::string(64 * 64, 'a'), grey)),
      testing::HasSubstr("64 x 64 pixels of 1 components where the file states 64 x 64 of 3"));
  CraftedDicom wide = dicom;
  wide.tile = 32;
  EXPECT_THAT(read(JpegLsOf(std::string(32 * 32 * 3, 'a'), wide)),
              testing::HasSubstr("32 x 32 pixels of 3 components where the file states 64 x 64"));
  std::string lossy = whole;
  lossy[lossy.find("\xff\xda") + 11] = 2;  // NEAR, behind three components
  EXPECT_THAT(read(lossy), testing::HasSubstr("a coding process that its transfer syntax"));
  EXPECT_NE(read(Jpeg().frames[6]), "");
  std::size_t shown = 0;
  constexpr std::size_t kFlips = 64;
  for (std::size_t i = 0; i < kFlips; ++i) {
    std::string flipped = whole;
    flipped[40 + i * (whole.size() - 80) / kFlips] ^= static_cast<char>(1 << (i % 8));
    shown += !read(flipped).empty();
  }
  EXPECT_GT(shown, kFlips / 2);
}

}  // namespace
}  // namespace patchbay::workers
