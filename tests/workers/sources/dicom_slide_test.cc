// DICOM slides: values of real ones against pydicom with Pillow and imagecodecs, every layout that
// is read, and what is refused.
#include "workers/sources/dicom_slide.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "tests/workers/sources/crafted_dicom.h"
#include "tests/workers/sources/dicom_slides.h"
#include "tests/workers/sources/icc_fixtures.h"
#include "tests/workers/sources/jpeg2000_writer.h"
#include "tests/workers/sources/slide_fixtures.h"

namespace patchbay::workers {
namespace {

using Table = CraftedDicom::Table;
constexpr std::string_view kJpeg2000 = "1.2.840.10008.1.2.4.90";

std::string Jpeg2000Of(const std::string& rgb, std::uint32_t side) {
  opj_image_cmptparm_t component{};
  component.dx = component.dy = 1;
  component.w = component.h = side;
  component.prec = 8;
  opj_image_cmptparm_t components[] = {component, component, component};
  opj_image_t* image = opj_image_create(3, components, OPJ_CLRSPC_SRGB);
  image->x1 = image->y1 = side;
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    image->comps[i % 3].data[i / 3] = static_cast<unsigned char>(rgb[i]);
  }
  opj_cparameters_t parameters = Jpeg2000Parameters();
  parameters.tcp_mct = 1;
  return CompressJpeg2000(image, parameters);
}

struct RealSlide {
  const char* file;
  Extent size;
  const char* sha256;  ///< the whole level's, by pydicom 3.0.2 with Pillow 13.0.0, and imagecodecs
                       ///< 2026.3.6
  double mpp;
  double power;
};

TEST_F(DicomSlide, PixelsOfRealSlidesAreThoseOfPydicom) {
  if (TestDataFolder().empty()) GTEST_SKIP() << "no slides at PATCHBAY_TEST_DATA";
  for (const RealSlide& slide :
       {RealSlide{"camelyon16-jpeg-ybr422.dcm", Flat(700, 1152),
                  "f1462724ce6d253d70fa7986adcb4f86b87b710ff197382c3574845f6f658212", 28.9685, 0},
        RealSlide{"cptac-brca-level.dcm", Flat(1547, 1680),
                  "7eebd36c17408da6f03790ba9b9c877440866433280bb374f54b996f0c7f8312",
                  15.821165833333, 20}}) {
    const auto image = Open(StrCat(TestDataFolder(), "/wsi/", slide.file));
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    const ImageLayout& layout = (*image)->layout();
    EXPECT_EQ(layout.kind, "dicom-wsi");
    ASSERT_EQ(layout.levels.size(), 1u);
    EXPECT_EQ(layout.levels[0].size, slide.size);
    EXPECT_NEAR(layout.spacing.MeanMpp().value_or(0), slide.mpp, 1e-9);
    EXPECT_EQ(layout.objective_power.value_or(0), slide.power);
    PatchReader reader(**image);
    const auto pixels = reader.Read(0, WholeOf(slide.size), 0);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    EXPECT_EQ(Sha256Of(std::as_bytes(std::span(**pixels))).Hex(), slide.sha256) << slide.file;
    const auto lookup = (*image)->ToSrgb();
    ASSERT_TRUE(lookup.ok()) << Describe(lookup.status());
    EXPECT_EQ(*lookup != nullptr, slide.power > 0) << "the profile of an optical path";
  }
}

TEST_F(DicomSlide, UncompressedTilesOfEveryLayoutAreRead) {
  CraftedDicom apart = Uncompressed();
  apart.planar = 1;
  apart.frames = PatternFrames(apart);
  CraftedDicom implicit = Uncompressed();
  implicit.syntax = "1.2.840.10008.1.2";
  CraftedDicom grey;
  grey.samples = 1;
  grey.photometric = "MONOCHROME2";
  grey.tile = 65;  // frames of odd length
  grey.frames = PatternFrames(grey);
  for (const CraftedDicom& dicom : {Uncompressed(), apart, implicit, grey}) {
    const auto image = Open(Write("a.dcm", dicom));
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    ExpectPattern(**image);
    EXPECT_DOUBLE_EQ((*image)->layout().spacing.y->value, 0.5);
    EXPECT_DOUBLE_EQ((*image)->layout().spacing.x->value, 0.25);
  }
}

TEST_F(DicomSlide, Jpeg2000TilesAreRead) {
  CraftedDicom dicom = Uncompressed();
  dicom.syntax = kJpeg2000;
  dicom.photometric = "YBR_RCT";
  for (std::string& frame : dicom.frames) frame = Jpeg2000Of(frame, dicom.tile);
  const auto image = Open(Write("a.dcm", dicom));
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  ExpectPattern(**image);
  EXPECT_EQ((*image)->TilesOf(0)->codec, tiles::TileCodec::kJpeg2000);
}

TEST_F(DicomSlide, TilesAreFoundWithoutATableAndByBoth) {
  std::vector<std::vector<std::uint8_t>> read;
  for (const Table table : {Table::kNone, Table::kBasic, Table::kExtended}) {
    const auto image = Open(Write("a.dcm", Jpeg(table)));
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    PatchReader reader(**image);
    const auto pixels = reader.Read(0, Box2D(30, 20, 170, 280), kFill);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    read.push_back(**pixels);
    const auto format = (*image)->TilesOf(0);
    ASSERT_TRUE(format.ok());
    EXPECT_FALSE(format->is_ycbcr);
    // Stores keep the pieces: those begin as a JPEG does, not with an item's head.
    const EncodedPatch& encoded = reader.encoded();
    ASSERT_EQ(encoded.pieces.size(), 20u);
    for (const EncodedPiece& piece : encoded.pieces) {
      EXPECT_EQ(encoded.bytes[piece.begin], std::byte{0xFF});
      EXPECT_EQ(encoded.bytes[piece.begin + 1], std::byte{0xD8});
    }
  }
  EXPECT_TRUE(read[0] == read[1] && read[0] == read[2]);
  std::size_t far = 0, i = 0;
  for (int y = 30; y < 200; ++y) {
    for (int x = 20; x < 300; ++x) {
      for (int c = 0; c < 3; ++c, ++i) far += std::abs(read[0][i] - PatternAt(y, x, c, 1)) > 40;
    }
  }
  EXPECT_LT(far, read[0].size() / 100) << "the tiles are not where they belong";
}

TEST_F(DicomSlide, SparseTilesLieWhereTheyStateAndOthersAreBackground) {
  CraftedDicom dicom = Uncompressed();
  dicom.organization = "TILED_SPARSE";
  for (std::int32_t row = 0; row < 4; ++row) {
    for (std::int32_t column = 0; column < 5; ++column) {
      dicom.places.push_back({64 * row + 1, 64 * column + 1});
    }
  }
  std::swap(dicom.places[2], dicom.places[9]);
  std::swap(dicom.frames[2], dicom.frames[9]);
  for (const bool is_implicit : {false, true}) {
    if (is_implicit) dicom.syntax = "1.2.840.10008.1.2";
    const auto whole = Open(Write("a.dcm", dicom));
    ASSERT_TRUE(whole.ok()) << Describe(whole.status());
    ExpectPattern(**whole);
  }
  dicom.places.erase(dicom.places.begin() + 6);
  dicom.frames.erase(dicom.frames.begin() + 6);
  const auto image = Open(Write("a.dcm", dicom));
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  PatchReader reader(**image);
  const auto pixels = reader.Read(0, Box2D(64, 60, 2, 8), kFill);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  EXPECT_EQ((**pixels)[0], PatternAt(64, 60, 0, 1));
  EXPECT_EQ((**pixels)[3 * 4], kFill);
  EXPECT_EQ((**pixels)[3 * 7 + 2], kFill);
}

TEST_F(DicomSlide, PartsOfAConcatenationAreOneLevel) {
  const CraftedDicom whole = Uncompressed();
  const auto part = [&](std::uint32_t begin, std::uint32_t end) {
    CraftedDicom one = whole;
    one.concatenation = "1.2.9";
    one.first_frame = begin;
    one.number = std::to_string(begin);
    one.frames.assign(whole.frames.begin() + begin, whole.frames.begin() + end);
    return one;
  };
  Write("c.dcm", part(0, 3));
  const std::string middle = Write("a.dcm", part(3, 11));
  Write("b.dcm", part(11, 20));
  const auto image = Open(middle);
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  ASSERT_EQ((*image)->layout().levels.size(), 1u);
  ExpectPattern(**image);
  std::filesystem::remove(folder_.File("c.dcm"));
  EXPECT_THAT(Describe(Open(middle).status()), testing::HasSubstr("is a part missing"));
  Write("c.dcm", part(0, 3));
  std::filesystem::remove(folder_.File("b.dcm"));
  EXPECT_THAT(Describe(Open(middle).status()), testing::HasSubstr("is a part missing"));
  Write("b.dcm", part(11, 20));
  CraftedDicom more = part(11, 20);
  more.first_frame = 20;
  Write("d.dcm", more);
  EXPECT_THAT(Describe(Open(middle).status()),
              testing::HasSubstr("29 frames (0028,0008) of TILED_FULL for 20 tiles"));
  std::filesystem::remove(folder_.File("d.dcm"));
  CraftedDicom other = part(11, 20);
  other.photometric = "YBR_FULL";
  other.syntax = kJpegSyntax;
  Write("b.dcm", other);
  EXPECT_THAT(Describe(Open(middle).status()),
              testing::HasSubstr("differ in size, tiles, samples or optical paths"));
}

TEST_F(DicomSlide, InstancesOfASeriesAreLevelsWhicheverIsNamed) {
  const std::string full = Write("1.dcm", Uncompressed());
  CraftedDicom half;
  half.width = 150;
  half.height = 100;
  half.number = "2";
  half.spacing = "0.001\\0.0005";
  half.frames = PatternFrames(half, 7);
  const std::string coarse = Write("0.dcm", half);
  CraftedDicom label = Uncompressed();
  label.image_type = "ORIGINAL\\PRIMARY\\LABEL\\NONE";
  const std::string of_label = Write("2.dcm", label);
  CraftedDicom other = Uncompressed();
  other.series = "1.2.4";
  Write("3.dcm", other);
  std::ofstream(folder_.File("notes.txt")) << "no DICOM";
  for (const std::string& path : {full, coarse}) {
    const auto image = Open(path);
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    const ImageLayout& layout = (*image)->layout();
    ASSERT_EQ(layout.levels.size(), 2u);
    EXPECT_DOUBLE_EQ(layout.levels[1].downsample, 2);
    EXPECT_DOUBLE_EQ(layout.spacing.y->value, 0.5);
    ExpectPattern(**image, 0);
    ExpectPattern(**image, 1, 7);
    EXPECT_EQ(DicomSlideFiles(Folders::OfThisUser(), path).value(),
              (std::vector<std::string>{coarse, full}));
  }
  EXPECT_THAT(Describe(Open(of_label).status()), testing::HasSubstr("is never opened"));
  half.height = 60;
  half.frames = PatternFrames(half);
  Write("0.dcm", half);
  EXPECT_THAT(Describe(Open(full).status()),
              testing::HasSubstr("instances 1 and 2 of 200 x 300 pixels and of 60 x 150 pixels"));
  Write("0.dcm", Uncompressed());
  EXPECT_THAT(Describe(Open(full).status()), testing::HasSubstr("leave one in the folder"));
}

TEST_F(DicomSlide, ALevelThatIsReplacedEndsTheReading) {
  const std::string path = Write("1.dcm", Uncompressed());
  CraftedDicom half;
  half.width = 150;
  half.height = 100;
  half.frames = PatternFrames(half);
  Write("2.dcm", half);
  const auto image = Open(path);
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  ExpectPattern(**image, 1);
  half.frames[0][0] ^= 1;
  Write("2.dcm", half);
  PatchReader reader(**image);
  EXPECT_EQ(reader.Read(1, Box2D(0, 0, 8, 8), 0).status().code(), absl::StatusCode::kAborted);
}

TEST_F(DicomSlide, FilesThatContradictThemselvesAreRefusedByTag) {
  const auto expect = [&](const std::function<void(CraftedDicom&)>& change, const char* why,
                          CraftedDicom dicom = Uncompressed()) {
    change(dicom);
    EXPECT_THAT(Refusal(dicom), testing::HasSubstr(why));
  };
  const auto set = [](std::uint32_t tag, const char* type, const std::string& value) {
    return [=](CraftedDicom& d) { d.more[tag] = DicomElement(tag, type, value); };
  };
  expect(set(0x00280008, "IS", "21"), "NumberOfFrames (0028,0008) is 21");
  expect(set(0x00280008, "IS", "40"), "PixelData (7fe0,0010) has 245760 bytes, 40 frames");
  expect(set(0x00480303, "UL", LittleEndian(2, 4)),
         "20 frames (0028,0008) of TILED_FULL for 20 tiles in 1 optical path and 2 focal planes");
  expect(set(0x00280008, "IS", "4000000000"), "NumberOfFrames (0028,0008): not 1 to");
  expect(set(0x00280008, "IS", "-2"), "NumberOfFrames (0028,0008): not 1 to");
  expect(set(0x00480006, "UL", LittleEndian(0, 4)), "(0048,0006): 200 x 0");
  expect(set(0x00480006, "UL", LittleEndian(0xFFFFFFFF, 4)), "(0048,0006)");
  expect(set(0x00480007, "UL", LittleEndian(1 << 26, 4)), "tiles of 64 x 64");
  expect(set(0x00480006, "US", LittleEndian(7, 2)), "(0048,0006): not one number");
  expect(set(0x00280010, "US", LittleEndian(0, 2)), "Rows (0028,0010)");
  expect(set(0x00280010, "US", LittleEndian(32, 2)), "NumberOfFrames (0028,0008) is 20");
  expect([](CraftedDicom& d) { d.frames[0].pop_back(), d.frames[0].pop_back(); },
         "PixelData (7fe0,0010) has 245758 bytes");
  expect([](CraftedDicom& d) { d.organization = "3D"; }, "DimensionOrganizationType (0020,9311)");
  expect([](CraftedDicom& d) { d.organization = ""; }, "(5200,9230) has 0 items for 20 frames");
  expect([](CraftedDicom& d) { d.bits = 16; }, "BitsAllocated (0028,0100) is 16");
  expect([](CraftedDicom& d) { d.photometric = "PALETTE COLOR"; },
         "PhotometricInterpretation (0028,0004)");
  expect([](CraftedDicom& d) { d.photometric = "YBR_FULL_422"; }, "(0028,0004) of 3 samples");
  expect([](CraftedDicom& d) { d.samples = 4; }, "of 4 samples (0028,0002)");
  expect(set(0x00280301, "CS", "YES"), "BurnedInAnnotation (0028,0301) is YES");
  expect(set(0x00480010, "CS", "YES"), "SpecimenLabelInImage (0048,0010) is YES");
  for (const auto& [syntax, why] :
       {std::pair{"1.2.840.10008.1.2.4.57", "lossless JPEG is not read"},
        {"1.2.840.10008.1.2.4.201", "high-throughput"},
        {"1.2.840.10008.1.2.5", "RLE is not read"},
        {"1.2.840.10008.1.2.1.99", "no whole-slide image"},
        {"1.2.3.4", "(0002,0010)"}}) {
    expect([&](CraftedDicom& d) { d.syntax = syntax; }, why);
  }
  expect([](CraftedDicom& d) { d.sop_class = "1.2"; }, "no whole-slide image");
  CraftedDicom sparse = Uncompressed();
  sparse.organization = "TILED_SPARSE";
  sparse.frames.resize(2);
  sparse.places = {{1, 1}, {1, 65}};
  expect([](CraftedDicom& d) { d.places[1] = {1, 1}; }, "frame 2 lies where another does", sparse);
  for (const std::pair<std::int32_t, std::int32_t> place :
       {std::pair{1, 2}, {0, 1}, {-63, 1}, {257, 1}, {1, 321}, {1 << 30, 1}}) {
    expect([&](CraftedDicom& d) { d.places[1] = place; },
           "(0048,021f) (0048,021e) is not on the grid of tiles", sparse);
  }
  expect([](CraftedDicom& d) { d.places.pop_back(); }, "has 1 items for 2 frames", sparse);
}

TEST_F(DicomSlide, OffsetsThatNameNoFrameAreRefused) {
  const auto expect = [&](Table table, std::size_t place, std::uint64_t offset, const char* why) {
    const CraftedDicom dicom = Jpeg(table);
    std::string bytes = DicomBytes(dicom);
    const bool is_basic = table == Table::kBasic;
    const std::string mark = is_basic ? LittleEndian(0x7FE0, 2) + LittleEndian(0x0010, 2)
                                      : LittleEndian(0x7FE0, 2) + LittleEndian(0x0001, 2);
    const std::size_t begin = bytes.find(mark) + (is_basic ? 20 : 12);
    const std::size_t width = is_basic ? 4 : 8;
    bytes.replace(begin + place * width, width, LittleEndian(offset, static_cast<int>(width)));
    std::ofstream(folder_.File("refused.dcm"), std::ios::binary) << bytes;
    const auto image = Open(folder_.File("refused.dcm"));
    Status status = image.status();
    if (image.ok()) {
      PatchReader reader(**image);
      status = reader.Read(0, Box2D(0, 0, 200, 300), 0).status();
    }
    EXPECT_THAT(Describe(status), testing::HasSubstr(why)) << place << " " << offset;
  };
  expect(Table::kBasic, 5, 0xFFFFFFF0, "the offset table (7fe0,0010): frame 6 at 4294967280");
  expect(Table::kExtended, 5, std::uint64_t{1} << 60, "the offset table (7fe0,0001): frame 6");
  expect(Table::kExtended, 19, ~std::uint64_t{0}, "the offset table (7fe0,0001): frame 20");
  expect(Table::kBasic, 5, 3, "overlaps the one before");
  expect(Table::kBasic, 0, 2, "its first and last frame");
  // One byte behind the item: found when it is read.
  const CraftedDicom dicom = Jpeg(Table::kBasic);
  const std::size_t second = 8 + dicom.frames[0].size() + dicom.frames[0].size() % 2;
  expect(Table::kBasic, 1, second + 2, "its frame is not one fragment (7fe0,0010)");
  std::size_t last = 2;
  for (std::size_t i = 0; i < 19; ++i)
    last += 8 + dicom.frames[i].size() + dicom.frames[i].size() % 2;
  expect(Table::kBasic, 19, last, "its first and last frame");
  // Without a table: one fragment more and one less than frames.
  for (const char* frames : {"19", "21"}) {
    CraftedDicom wrong = Jpeg();
    wrong.organization = "TILED_SPARSE";
    for (int i = 0; i < std::stoi(frames); ++i)
      wrong.places.push_back({64 * (i / 5) + 1, 64 * (i % 5) + 1});
    if (wrong.places.size() == 21) wrong.places.back() = {1, 1};
    wrong.more[0x00280008] = DicomElement(0x00280008, "IS", frames);
    EXPECT_THAT(Refusal(wrong), testing::HasSubstr("frames in several fragments are not read"));
  }
  CraftedDicom wrong = Jpeg(Table::kBasic);
  wrong.more[0x00280008] = DicomElement(0x00280008, "IS", "5");
  wrong.width = 320;
  wrong.height = 64;
  EXPECT_THAT(Refusal(wrong), testing::HasSubstr("has 20 offsets for 5 frames (0028,0008)"));
}

TEST_F(DicomSlide, CutAndDamagedFilesGetAnAnswer) {
  CraftedDicom dicom = Jpeg(Table::kBasic);
  dicom.width = dicom.height = 128;
  dicom.organization = "TILED_SPARSE";
  dicom.frames.resize(4);
  dicom.places = {{1, 1}, {1, 65}, {65, 1}, {65, 65}};
  const std::string whole = DicomBytes(dicom);
  const std::string path = folder_.File("a.dcm");
  std::size_t refused = 0, runs = 0;
  const auto read = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    const auto image = Open(path);
    Status status = image.status();
    if (image.ok()) {
      PatchReader reader(**image);
      status = reader.Read(0, Box2D(0, 0, 128, 128), 0).status();
    }
    ++runs;
    refused += status.ok() ? 0 : 1;
    const auto code = status.code();
    EXPECT_TRUE(status.ok() || code == absl::StatusCode::kInvalidArgument ||
                code == absl::StatusCode::kUnimplemented || code == absl::StatusCode::kDataLoss)
        << Describe(status);
  };
  read(whole);
  EXPECT_EQ(refused, 0u);
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 20)
    read(whole.substr(0, size));
  EXPECT_EQ(refused, runs - 1) << "no cut file is whole";
  const std::size_t head = whole.find(LittleEndian(0x7FE0, 2) + LittleEndian(0x0010, 2)) + 40;
  for (std::uint64_t n = 0; n < 150; ++n) {
    const PhiloxBlock block = Draw({3, 0, 0, 0, DrawStream::kParameters}, n);
    std::string damaged = whole;
    damaged[132 + block.word[0] % (head - 132)] = static_cast<char>(block.word[1]);
    read(damaged);
  }
  CraftedDicom nested = dicom;
  std::string inner;
  for (int i = 0; i < 100; ++i) inner = DicomElement(0x00400560, "SQ", DicomItem(inner));
  nested.more[0x00400560] = inner;
  EXPECT_THAT(Refusal(nested), testing::HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace patchbay::workers
