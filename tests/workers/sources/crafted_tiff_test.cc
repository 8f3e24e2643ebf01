// TIFFs made to measure: absent pieces, damage, layouts that are refused.
#include "tests/workers/sources/crafted_tiff.h"

#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "runtime/os/file.h"
#include "workers/sources/source_extent.h"
#include "workers/sources/tiff_source.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;

class CraftedTiff : public testing::Test {
 protected:
  StatusOr<std::unique_ptr<ImageSource>> Open(const std::vector<CraftedImage>& images,
                                              bool is_big = false) {
    path_ = folder_.File(StrCat("crafted", ++count_, ".tif"));
    PB_RETURN_IF_ERROR(WriteTiff(path_, images, is_big));
    return OpenImage(Folders::OfThisUser(), path_);
  }

  TemporaryFolder folder_;
  std::string path_;
  int count_ = 0;
};

CraftedImage FlatImage(std::uint32_t side = 64) {
  CraftedImage image;
  image.width = image.height = side;
  FillFlat(image);
  return image;
}

void ExpectRefused(const StatusOr<std::unique_ptr<ImageSource>>& image, absl::StatusCode code,
                   const std::string& text) {
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.status().code(), code) << Describe(image.status());
  EXPECT_THAT(Describe(image.status()), HasSubstr(text));
}

TEST_F(CraftedTiff, ClassicAndBigFilesReadAlike) {
  for (const bool is_big : {false, true}) {
    const auto image = Open({FlatImage()}, is_big);
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    PatchReader reader(**image);
    const auto pixels = reader.Read(0, Box2D(16, 32, 16, 16), 0);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    EXPECT_THAT(**pixels, testing::Each(FlatValue(6)));
  }
}

TEST_F(CraftedTiff, AFileThatGoesOnFarBeyondWhatItsDirectoriesNameIsRefusedWithBothSizes) {
  for (const bool is_big : {false, true}) {
    ASSERT_TRUE(Open({FlatImage()}, is_big).ok());
    const std::uint64_t written = std::filesystem::file_size(path_);
    std::filesystem::resize_file(path_, written + kMaxUnnamedBytes);
    EXPECT_TRUE(OpenImage(Folders::OfThisUser(), path_).ok())
        << "some slack is for what writers add";
    std::filesystem::resize_file(path_, std::uint64_t{1} << 30);  // a hole
    const auto image = OpenImage(Folders::OfThisUser(), path_);
    ExpectRefused(image, absl::StatusCode::kInvalidArgument,
                  "the file has 1073741824 bytes (1.0 GiB), its headers name the first ");
  }
}

TEST_F(CraftedTiff, WhatAnyDirectoryNamesCountsForTheLengthOfItsFile) {
  CraftedImage label = FlatImage();
  label.width = label.tile = 6000;  // a tile of 108 MB, no level of the image before
  label.height = 3000;
  label.subfile = 1;
  label.pieces.clear();
  FillFlat(label);
  const auto image = Open({FlatImage(), label});
  EXPECT_TRUE(image.ok()) << Describe(image.status());
}

TEST_F(CraftedTiff, TilesWhosePlacesStandUnderTheTagsOfStripsAreRead) {
  CraftedImage flat = FlatImage();
  flat.places_as_strips = true;
  const auto image = Open({flat});
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  PatchReader reader(**image);
  const auto pixels = reader.Read(0, Box2D(16, 32, 16, 16), 0);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  EXPECT_THAT(**pixels, testing::Each(FlatValue(6)));
}

TEST_F(CraftedTiff, AnImageThatLiesMirroredOrTurnedIsRefused) {
  for (const std::uint16_t orientation : {2, 3, 4, 5, 6, 7, 8}) {
    CraftedImage turned = FlatImage();
    turned.orientation = orientation;
    ExpectRefused(Open({turned}), absl::StatusCode::kUnimplemented,
                  StrCat("orientation ", orientation, " (the image lies mirrored or turned"));
  }
}

TEST_F(CraftedTiff, ANumberThatIsNoOrientationIsCalledThat) {
  for (const std::uint16_t orientation : {0, 9, 65535}) {
    CraftedImage wrong = FlatImage();
    wrong.orientation = orientation;
    ExpectRefused(Open({wrong}), absl::StatusCode::kUnimplemented,
                  StrCat("orientation ", orientation, ": there are orientations 1 to 8"));
  }
}

TEST_F(CraftedTiff, ATextEndsWithANulThatItsLengthCounts) {
  CraftedImage named = FlatImage();
  named.description = "tissue";
  ASSERT_TRUE(Open({named}).ok());
  const auto file = ReadFile(Folders::OfThisUser(), path_, 1u << 20);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::size_t value = 0;
    std::memcpy(&value, file->data() + at, bytes);
    return value;
  };
  const std::size_t directory = number(4, 4);
  for (std::size_t i = 0; i < number(directory, 2); ++i) {
    const std::size_t field = directory + 2 + 12 * i;
    if (number(field, 2) != 270) continue;
    ASSERT_EQ(number(field + 4, 4), 7u);
    EXPECT_EQ(file->substr(number(field + 8, 4), 7), std::string("tissue\0", 7));
    return;
  }
  FAIL() << "no description";
}

TEST_F(CraftedTiff, OmeXmlStatesTheMicrometresOfAPixel) {
  CraftedImage flat = FlatImage();
  flat.description =
      R"(<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">)"
      R"(<Image><Pixels PhysicalSizeX="500" PhysicalSizeXUnit="nm" PhysicalSizeY="0.25"/></Image></OME>)";
  const auto image = Open({flat});
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  const Spacing& spacing = (*image)->layout().spacing;
  ASSERT_TRUE(spacing.y && spacing.x);
  EXPECT_DOUBLE_EQ(spacing.y->Micrometres(), 0.25);
  EXPECT_DOUBLE_EQ(spacing.x->Micrometres(), 0.5);
}

TEST_F(CraftedTiff, PatchWhollyOutsideTheImageIsFill) {
  const auto image = Open({FlatImage()});
  ASSERT_TRUE(image.ok());
  PatchReader reader(**image);
  const auto pixels = reader.Read(0, Box2D(-500, 4000, 8, 8), 33);
  ASSERT_TRUE(pixels.ok());
  EXPECT_THAT(**pixels, testing::Each(33));
}

TEST_F(CraftedTiff, AbsentPieceIsFillAndListed) {
  CraftedImage hole = FlatImage();
  hole.pieces[5].clear();
  const auto image = Open({hole});
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  PatchReader reader(**image);
  const auto pixels = reader.Read(0, Box2D(16, 8, 16, 16), 251);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  for (std::size_t i = 0; i < (*pixels)->size(); ++i) {
    ASSERT_EQ((**pixels)[i], i / 3 % 16 < 8 ? FlatValue(4) : 251);
  }
  int absent = 0;
  for (const EncodedPiece& piece : reader.encoded().pieces) {
    if (!piece.absent) continue;
    ++absent;
    EXPECT_EQ(piece.chunk.y, 1);
    EXPECT_EQ(piece.chunk.x, 1);
  }
  EXPECT_EQ(absent, 1);
}

TEST_F(CraftedTiff, APieceWithoutBytesIsAbsentWhereverItLies) {
  CraftedImage hole = FlatImage();
  hole.pieces[0].clear();
  hole.absent_offset = 8;
  const auto image = Open({hole});
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  PatchReader reader(**image);
  const auto pixels = reader.Read(0, Box2D(0, 0, 16, 16), 251);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  EXPECT_THAT(**pixels, testing::Each(251));
}

CraftedImage AperioLevel(std::uint32_t side) {
  CraftedImage image = FlatImage(side);
  image.description = "Aperio Image Library|MPP = 0,25|AppMag = 40";
  return image;
}

std::vector<std::pair<std::int64_t, std::int64_t>> AbsentPieces(const ImageSource& image,
                                                                int level) {
  const LevelLayout& l = image.layout().levels[static_cast<std::size_t>(level)];
  EncodedPatch patch;
  EXPECT_TRUE(image.Fetch(level, Box2D(0, 0, l.size.y, l.size.x), patch).ok());
  std::vector<std::pair<std::int64_t, std::int64_t>> absent;
  for (const EncodedPiece& piece : patch.pieces) {
    if (piece.absent) absent.emplace_back(piece.chunk.y, piece.chunk.x);
  }
  return absent;
}

TEST_F(CraftedTiff, AperioHoleSpreadsToThePiecesThatCoverIt) {
  CraftedImage finest = AperioLevel(128), middle = AperioLevel(64), coarse = AperioLevel(32);
  finest.pieces[0 * 8 + 5].clear();
  const auto image = Open({finest, middle, coarse});
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  using Pieces = std::vector<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(AbsentPieces(**image, 0), (Pieces{{0, 5}}));
  EXPECT_EQ(AbsentPieces(**image, 1), (Pieces{{0, 2}}));
  EXPECT_EQ(AbsentPieces(**image, 2), (Pieces{{0, 1}}));
  EXPECT_DOUBLE_EQ((*image)->layout().spacing.x->Micrometres(), 0.25);
}

TEST_F(CraftedTiff, AperioHoleInTheLastRowTakesTheRow) {
  CraftedImage finest = AperioLevel(128), reduced = AperioLevel(64);
  reduced.pieces[3 * 4 + 1].clear();
  const auto image = Open({finest, reduced});
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  EXPECT_TRUE(AbsentPieces(**image, 0).empty());
  EXPECT_THAT(AbsentPieces(**image, 1),
              testing::UnorderedElementsAre(testing::Pair(3, 0), testing::Pair(3, 1),
                                            testing::Pair(3, 2), testing::Pair(3, 3)));
}

TEST_F(CraftedTiff, GenericHoleStaysWhereItIs) {
  CraftedImage finest = FlatImage(128), reduced = FlatImage(64);
  finest.pieces[0].clear();
  reduced.subfile = 1;
  reduced.pieces[15].clear();
  const auto image = Open({finest, reduced});
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  EXPECT_EQ(AbsentPieces(**image, 0).size(), 1u);
  EXPECT_EQ(AbsentPieces(**image, 1).size(), 1u);
}

TEST_F(CraftedTiff, DamagedTileIsNamedAndNeverBackground) {
  JpegEncoder encoder(80);
  const std::vector<std::uint8_t> gray(32 * 32 * 3, 90);
  std::vector<std::byte> jpeg;
  ASSERT_TRUE(encoder.Encode({gray.data(), 32, 32}, jpeg).ok());
  CraftedImage image;
  image.width = image.height = 128;
  image.tile = 32;
  image.compression = 7;
  image.tables = *encoder.Tables();
  image.pieces.assign(16, std::string(AsText(jpeg)));
  image.pieces[6].resize(image.pieces[6].size() / 2);
  const auto source = Open({image});
  ASSERT_TRUE(source.ok()) << Describe(source.status());
  PatchReader reader(**source);
  EXPECT_TRUE(reader.Read(0, Box2D(0, 0, 32, 128), 255).ok());
  const auto pixels = reader.Read(0, Box2D(40, 70, 30, 30), 255);
  ASSERT_FALSE(pixels.ok());
  EXPECT_EQ(pixels.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Describe(pixels.status()), HasSubstr("level 0 row 1 column 2"));
  EXPECT_TRUE(reader.Read(0, Box2D(96, 0, 32, 128), 255).ok()) << "the reader goes on";
}

TEST_F(CraftedTiff, TileOfAnotherSizeIsRefused) {
  JpegEncoder encoder(80);
  const std::vector<std::uint8_t> gray(64 * 64 * 3, 90);
  std::vector<std::byte> jpeg;
  ASSERT_TRUE(encoder.Encode({gray.data(), 48, 32}, jpeg).ok());
  CraftedImage image;
  image.tile = 32;
  image.compression = 7;
  image.tables = *encoder.Tables();
  image.pieces.assign(4, std::string(AsText(jpeg)));
  const auto source = Open({image});
  ASSERT_TRUE(source.ok());
  PatchReader reader(**source);
  const auto pixels = reader.Read(0, Box2D(0, 0, 8, 8), 255);
  ASSERT_FALSE(pixels.ok());
  EXPECT_EQ(pixels.status().code(), absl::StatusCode::kDataLoss);
}

std::string Deflated(const std::string& raw) {
  std::string out(compressBound(raw.size()), '\0');
  uLongf size = out.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size,
                     reinterpret_cast<const Bytef*>(raw.data()), raw.size()),
            Z_OK);
  out.resize(size);
  return out;
}

TEST_F(CraftedTiff, ShortDeflateTileIsDataLoss) {
  for (const std::uint16_t compression : {8, 32946}) {
    CraftedImage image;
    image.compression = compression;
    image.pieces.assign(16, Deflated(std::string(16 * 16 * 3, 'x')));
    image.pieces[3] = Deflated(std::string(16 * 16 * 3 - 1, 'x'));
    const auto source = Open({image});
    ASSERT_TRUE(source.ok());
    PatchReader reader(**source);
    EXPECT_TRUE(reader.Read(0, Box2D(0, 0, 64, 48), 255).ok());
    const auto pixels = reader.Read(0, Box2D(0, 48, 1, 1), 255);
    ASSERT_FALSE(pixels.ok());
    EXPECT_EQ(pixels.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Describe(pixels.status()), HasSubstr("level 0 row 0 column 3"));
  }
}

TEST_F(CraftedTiff, PackBitsRunsAndLiteralsDecode) {
  CraftedImage image;
  image.width = image.height = image.tile = 16;
  image.samples = 1;
  image.photometric = 1;
  image.compression = 32773;
  // 2 literals, then 127 + 127 copies of 9, which is 256 samples.
  image.pieces = {std::string("\x01\x05\x06\x82\x09\x82\x09", 7)};
  const auto source = Open({image});
  ASSERT_TRUE(source.ok());
  PatchReader reader(**source);
  const auto pixels = reader.Read(0, Box2D(0, 0, 16, 16), 0);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  EXPECT_EQ((**pixels)[0], 5);
  EXPECT_EQ((**pixels)[1], 6);
  EXPECT_EQ((**pixels)[255], 9);
}

TEST_F(CraftedTiff, WhiteIsZeroIsInverted) {
  CraftedImage image;
  image.samples = 1;
  image.photometric = 0;
  FillFlat(image);
  const auto source = Open({image});
  ASSERT_TRUE(source.ok());
  PatchReader reader(**source);
  const auto pixels = reader.Read(0, Box2D(0, 16, 2, 2), 0);
  ASSERT_TRUE(pixels.ok());
  EXPECT_THAT(**pixels, testing::Each(255 - FlatValue(1)));
}

TEST_F(CraftedTiff, LayoutsWeDoNotReadSaySo) {
  CraftedImage deep = FlatImage();
  deep.bits = 32;
  ExpectRefused(Open({deep}), absl::StatusCode::kUnimplemented,
                "32 bits per sample: 8 and 16 are supported");
  CraftedImage lossy = FlatImage();
  lossy.bits = 16;
  lossy.compression = 7;
  ExpectRefused(Open({lossy}), absl::StatusCode::kUnimplemented,
                "compression 7 of 16 bits per sample is not supported");
  for (const std::vector<std::uint16_t>& mixed :
       {std::vector<std::uint16_t>{8, 4, 8}, {8, 8, 16}, {4, 8, 8}}) {
    CraftedImage image = FlatImage();
    image.bits_each = mixed;
    ExpectRefused(Open({image}), absl::StatusCode::kUnimplemented, "different bits per sample");
  }
  CraftedImage palette = FlatImage();
  palette.photometric = 3;
  ExpectRefused(Open({palette}), absl::StatusCode::kUnimplemented, "photometric interpretation 3");
  CraftedImage unknown = FlatImage();
  unknown.compression = 34712;
  ExpectRefused(Open({unknown}), absl::StatusCode::kUnimplemented,
                "compression JPEG 2000 (34712) is not supported");
  CraftedImage alpha = FlatImage();
  alpha.samples = 4;
  ExpectRefused(Open({alpha}), absl::StatusCode::kUnimplemented,
                "photometric interpretation 2 of 4 samples");
  CraftedImage many = FlatImage();
  many.samples = 65;
  many.bits_each = {8};
  ExpectRefused(Open({many}), absl::StatusCode::kUnimplemented,
                "65 samples per pixel: 1 to 64 are supported");
  CraftedImage reversed = FlatImage();
  reversed.fill_order = 2;
  ExpectRefused(Open({reversed}), absl::StatusCode::kUnimplemented,
                "reversed bits in bytes (fill order) are not supported");
  CraftedImage planar = FlatImage();
  planar.planar = 231;
  ExpectRefused(Open({planar}), absl::StatusCode::kInvalidArgument,
                "planar configuration 231: TIFF has only 1 and 2");
  ExpectRefused(Open({FlatImage(), FlatImage()}), absl::StatusCode::kUnimplemented,
                "not a pyramid");
  ExpectRefused(Open({AperioLevel(64), AperioLevel(64)}), absl::StatusCode::kUnimplemented,
                "focal planes");
}

TEST_F(CraftedTiff, MissingPiecesAndMadSizesAreMalformed) {
  CraftedImage few = FlatImage();
  few.pieces.pop_back();
  ExpectRefused(Open({few}), absl::StatusCode::kInvalidArgument, "16 tiles or strips with 15");
  CraftedImage empty = FlatImage();
  empty.width = 0;
  ExpectRefused(Open({empty}), absl::StatusCode::kInvalidArgument, "0 x 64");
  CraftedImage vast = FlatImage();
  vast.width = vast.height = 0xFFFFFFFF;
  ExpectRefused(Open({vast}), absl::StatusCode::kInvalidArgument,
                "4294967295 x 4294967295 pixels: 1 to 67108864 a side are supported");
  CraftedImage huge_tile = FlatImage();
  huge_tile.tile = 60000;
  ExpectRefused(Open({huge_tile}), absl::StatusCode::kUnimplemented, "over the limit");
}

TEST_F(CraftedTiff, ReducedImageOfOtherProportionsIsNotALevel) {
  CraftedImage label = FlatImage(32);
  label.subfile = 1;
  label.height = 16;
  label.pieces.resize(2);
  CraftedImage half = FlatImage(32);
  half.subfile = 1;
  const auto image = Open({FlatImage(), label, half});
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  ASSERT_EQ((*image)->layout().levels.size(), 2u);
  EXPECT_EQ((*image)->layout().levels[1].size.y, 32);
}

TEST_F(CraftedTiff, TileBeyondTheEndOfTheFileIsDataLoss) {
  ASSERT_TRUE(Open({FlatImage()}).ok());
  auto text = ReadFile(Folders::OfThisUser(), path_, 1 << 20);
  ASSERT_TRUE(text.ok());
  // The first offset of tag 324 is moved past the end.
  const auto at = text->find(std::string("\x44\x01\x04\x00", 4));
  ASSERT_NE(at, std::string::npos);
  std::uint32_t array = 0;
  std::memcpy(&array, text->data() + at + 8, 4);
  text->replace(array, 4, "\xF0\xFF\xFF\x7F");
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), path_, AsBytes(*text)).ok());
  const auto image = OpenImage(Folders::OfThisUser(), path_);
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  PatchReader reader(**image);
  const auto pixels = reader.Read(0, Box2D(0, 0, 8, 8), 255);
  ASSERT_FALSE(pixels.ok());
  EXPECT_EQ(pixels.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Describe(pixels.status()), HasSubstr("level 0 row 0 column 0"));
  EXPECT_TRUE(reader.Read(0, Box2D(16, 16, 8, 8), 255).ok());
}

TEST_F(CraftedTiff, DirectoryThatPointsToItselfIsALoop) {
  ASSERT_TRUE(Open({FlatImage()}).ok());
  auto text = ReadFile(Folders::OfThisUser(), path_, 1 << 20);
  ASSERT_TRUE(text.ok());
  std::uint32_t directory = 0;
  std::memcpy(&directory, text->data() + 4, 4);
  std::uint16_t entries = 0;
  std::memcpy(&entries, text->data() + directory, 2);
  std::memcpy(text->data() + directory + 2 + entries * 12u, &directory, 4);
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), path_, AsBytes(*text)).ok());
  ExpectRefused(OpenImage(Folders::OfThisUser(), path_), absl::StatusCode::kInvalidArgument,
                "loops back");
}

TEST_F(CraftedTiff, CallersMistakesAreInvalidArgument) {
  const auto image = Open({FlatImage()});
  ASSERT_TRUE(image.ok());
  EncodedPatch patch;
  EXPECT_EQ((*image)->Fetch(1, Box2D(0, 0, 8, 8), patch).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*image)->Fetch(-1, Box2D(0, 0, 8, 8), patch).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*image)->Fetch(0, Box2D(0, 0, 0, 8), patch).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*image)->Fetch(0, Box2D(INT64_MIN, 0, 8, 8), patch).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE((*image)->Fetch(0, Box2D(0, 0, 8, 8), patch).ok());
  std::vector<std::byte> pixels(8 * 8 * 3);
  const auto wrong =
      ContiguousView(pixels.data(), DType::kUint8, std::array<std::int64_t, 3>{8, 4, 3});
  const auto scratch = (*image)->MakeScratch();
  EXPECT_EQ((*image)->Decode(patch, wrong, 0, *scratch).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace patchbay::workers
