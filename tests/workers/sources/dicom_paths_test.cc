// Optical paths of DICOM slides as channels, and the choice of one of them or of a focal plane;
// what is not chosen is refused by its heights.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/crafted_dicom.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/sources/channel_choice.h"
#include "workers/sources/dicom_slide.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kSeedOfDapi = 3, kSeedOfCd8 = 4;

std::string PathItem(const std::string& identifier, const std::string& description) {
  const std::string text = description.empty() ? "" : DicomElement(0x00480107, "ST", description);
  return DicomItem(DicomElement(0x00480106, "SH", identifier) + text);
}

std::string PathSequence(const std::string& items) { return DicomElement(0x00480105, "SQ", items); }

/// A grey level of 200 x 300 pixels without optical paths.
CraftedDicom Grey(std::uint32_t seed) {
  CraftedDicom dicom;
  dicom.samples = 1;
  dicom.photometric = "MONOCHROME2";
  dicom.frames = PatternFrames(dicom, seed);
  return dicom;
}

/// Two optical paths in one instance of TILED_FULL.
CraftedDicom TwoPaths() {
  CraftedDicom dicom = Grey(kSeedOfDapi);
  const CraftedDicom second = Grey(kSeedOfCd8);
  dicom.frames.insert(dicom.frames.end(), second.frames.begin(), second.frames.end());
  dicom.more[0x00480105] = PathSequence(PathItem("1", "DAPI") + PathItem("2", "CD8"));
  return dicom;
}

/// The same with a place for each frame, every other one of the second path.
CraftedDicom SparsePaths() {
  const CraftedDicom full = TwoPaths();
  CraftedDicom dicom = full;
  dicom.organization = "TILED_SPARSE";
  dicom.frames.clear();
  const std::size_t tiles = full.frames.size() / 2;
  for (std::size_t i = 0; i < tiles; ++i) {
    for (const std::size_t path : {1, 0}) {
      dicom.frames.push_back(full.frames[path * tiles + i]);
      dicom.places.push_back({static_cast<std::int32_t>(64 * (i / 5) + 1),
                              static_cast<std::int32_t>(64 * (i % 5) + 1)});
      dicom.frame_paths.push_back(path == 0 ? "1" : "2");
    }
  }
  return dicom;
}

class DicomPaths : public testing::Test {
 protected:
  StatusOr<std::unique_ptr<ImageSource>> Open(const std::string& name,
                                              const SlideChoice& choice = {}) {
    return OpenDicomSlide(Folders::OfThisUser(), folder_.File(name), ReadCaches::ForOneImage(),
                          choice);
  }
  StatusOr<std::unique_ptr<ImageSource>> OpenOne(const CraftedDicom& dicom,
                                                 const SlideChoice& choice = {}) {
    WriteDicom(folder_.File("a.dcm"), dicom);
    return Open("a.dcm", choice);
  }
  std::string Refusal(const CraftedDicom& dicom, const SlideChoice& choice = {}) {
    const auto image = OpenOne(dicom, choice);
    return image.ok() ? "" : Describe(image.status());
  }

  TemporaryFolder folder_;
};

void ExpectPaths(const StatusOr<std::unique_ptr<ImageSource>>& image,
                 const std::vector<std::string>& names = {"DAPI", "CD8"}) {
  ASSERT_TRUE(image.ok()) << Describe(image.status());
  const ImageLayout& layout = (*image)->layout();
  EXPECT_EQ(layout.channels, 2);
  EXPECT_EQ(layout.channel_names, names);
  EXPECT_FALSE(IsRgb(layout));
  PatchReader reader(**image);
  for (const Box& box : {Box2D(0, 0, 200, 300), Box2D(60, 50, 90, 33)}) {
    const auto pixels = reader.Read(0, box, 0);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    std::size_t other = 0, i = 0;
    for (std::int64_t y = box.y; y < box.y + box.height; ++y) {
      for (std::int64_t x = box.x; x < box.x + box.width; ++x) {
        other += (**pixels)[i++] != PatternAt(y, x, 0, kSeedOfDapi);
        other += (**pixels)[i++] != PatternAt(y, x, 0, kSeedOfCd8);
      }
    }
    EXPECT_EQ(other, 0u) << box.ToString();
  }
  EXPECT_EQ(ChooseChannels({names[1]}, layout).value(), std::vector<int>{1});
  EXPECT_THAT(Describe(ChooseChannels({"FITC"}, layout).status()),
              HasSubstr(StrCat("no channel 'FITC'; it has ", names[0], ", ", names[1])));
}

TEST_F(DicomPaths, OfOneInstanceAreChannelsByName) {
  ExpectPaths(OpenOne(TwoPaths()));
  ExpectPaths(OpenOne(SparsePaths()));
  CraftedDicom plain = TwoPaths();
  plain.more[0x00480105] = PathSequence(PathItem("1", "DAPI") + PathItem("2", ""));
  ExpectPaths(OpenOne(plain), {"1", "2"});
  plain.more[0x00480105] = PathSequence(PathItem("1", "stain") + PathItem("2", "stain"));
  ExpectPaths(OpenOne(plain), {"1", "2"});
}

TEST_F(DicomPaths, OfAConcatenationAreChannels) {
  const CraftedDicom whole = TwoPaths();
  for (const std::uint32_t begin : {0u, 13u, 27u}) {
    CraftedDicom part = whole;
    part.concatenation = "1.2.9";
    part.first_frame = begin;
    part.number = std::to_string(begin + 1);
    const std::uint32_t end = begin == 27 ? 40 : begin == 13 ? 27 : 13;
    part.frames.assign(whole.frames.begin() + begin, whole.frames.begin() + end);
    WriteDicom(folder_.File(StrCat("part", begin, ".dcm")), part);
  }
  ExpectPaths(Open("part13.dcm"));
}

TEST_F(DicomPaths, OfInstancesEachAreChannelsInTheOrderOfTheirNumbers) {
  CraftedDicom dapi = Grey(kSeedOfDapi), cd8 = Grey(kSeedOfCd8);
  dapi.more[0x00480105] = PathSequence(PathItem("a", "DAPI"));
  dapi.number = "9";
  cd8.more[0x00480105] = PathSequence(PathItem("b", "CD8"));
  cd8.number = "10";
  WriteDicom(folder_.File("2.dcm"), dapi);
  WriteDicom(folder_.File("1.dcm"), cd8);
  ExpectPaths(Open("1.dcm"));
  CraftedDicom half;
  half.width = 150;
  half.height = 100;
  half.samples = 1;
  half.photometric = "MONOCHROME2";
  half.number = "11";
  half.frames = PatternFrames(half, 5);
  half.more[0x00480105] = PathSequence(PathItem("a", "DAPI"));
  WriteDicom(folder_.File("3.dcm"), half);
  EXPECT_THAT(Describe(Open("1.dcm").status()),
              HasSubstr("instance 11: a level of 100 x 150 pixels has 1 of the 2 optical paths"));
  half.number = "12";
  half.more[0x00480105] = PathSequence(PathItem("b", "CD8"));
  WriteDicom(folder_.File("4.dcm"), half);
  const auto image = Open("1.dcm");
  ExpectPaths(image);
  ASSERT_EQ((*image)->layout().levels.size(), 2u);
  PatchReader reader(**image);
  const auto pixels = reader.Read(1, Box2D(40, 40, 1, 1), 0);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  const auto value = static_cast<std::uint8_t>(PatternAt(40, 40, 0, 5));
  EXPECT_EQ(**pixels, (std::vector<std::uint8_t>{value, value}));
}

TEST_F(DicomPaths, ThatContradictThemselvesAreRefused) {
  CraftedDicom one = TwoPaths();
  one.frames.resize(20);
  EXPECT_THAT(Refusal(one),
              HasSubstr("NumberOfFrames (0028,0008) is 20 of TILED_FULL, and 20 tiles "
                        "cover 200 x 300 in each of 2 optical paths"));
  CraftedDicom twice = TwoPaths();
  twice.more[0x00480105] = PathSequence(PathItem("1", "DAPI") + PathItem("1", "CD8"));
  EXPECT_THAT(Refusal(twice), HasSubstr("two items of one OpticalPathIdentifier (0048,0106)"));
  CraftedDicom unknown = SparsePaths();
  unknown.frame_paths[4] = "7";
  EXPECT_THAT(Refusal(unknown),
              HasSubstr("OpticalPathIdentifier (0048,0106) of frame 5 is none of"));
  CraftedDicom silent = SparsePaths();
  silent.frame_paths.clear();
  EXPECT_THAT(Refusal(silent), HasSubstr("frame 1: it is of none of 2 optical paths"));
  CraftedDicom colours;
  colours.frames = PatternFrames(colours);
  const std::vector<std::string> second = colours.frames;
  colours.frames.insert(colours.frames.end(), second.begin(), second.end());
  colours.more[0x00480105] = PathSequence(PathItem("1", "") + PathItem("2", ""));
  EXPECT_THAT(Refusal(colours), HasSubstr("2 optical paths (0048,0105) of 3 samples"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += PathItem(std::to_string(i), "");
  colours.more[0x00480105] = PathSequence(many);
  EXPECT_THAT(Refusal(colours), HasSubstr("more than 64 optical paths"));
}

/// Three focal planes of the two paths, 1.5 um apart: `right` has their pixels, the others have
/// others.
CraftedDicom ThreePlanes(std::size_t right) {
  CraftedDicom dicom = TwoPaths();
  dicom.frames.clear();
  for (const std::uint32_t seed : {kSeedOfDapi, kSeedOfCd8}) {
    for (std::size_t plane = 0; plane < 3; ++plane) {
      const auto other = static_cast<std::uint32_t>(20 + plane);
      const std::vector<std::string> frames =
          PatternFrames(dicom, plane == right ? seed : seed + other);
      dicom.frames.insert(dicom.frames.end(), frames.begin(), frames.end());
    }
  }
  dicom.plane_spacing = "0.0015";
  return dicom;
}

TEST_F(DicomPaths, FocalPlanesAreRefusedByTheirHeights) {
  CraftedDicom full = ThreePlanes(1);
  EXPECT_THAT(
      Refusal(full),
      HasSubstr("frame 21 lies where another does: focal planes at 0, 1.5, 3 um: a table of "
                "slides chooses one by its column focal_plane"));
  full.plane_spacing = "";
  EXPECT_THAT(Refusal(full, {1.5, ""}),
              HasSubstr("3 focal planes (0048,0303) without SpacingBetweenSlices (0018,0088)"));
  CraftedDicom sparse = SparsePaths();
  sparse.places[2] = sparse.places[0];
  sparse.focal_um.assign(sparse.places.size(), 0);
  sparse.focal_um[2] = 1.5;
  EXPECT_THAT(Refusal(sparse),
              HasSubstr("frame 3 lies where another does: focal planes at 0, 1.5 um"));
  CraftedDicom curved = SparsePaths();  // every tile in focus at a height of its own
  for (std::size_t i = 0; i < curved.places.size(); ++i) {
    curved.focal_um.push_back(static_cast<double>(i) / 4);
  }
  ExpectPaths(OpenOne(curved));
  EXPECT_THAT(Refusal(curved, {0.25, ""}),
              HasSubstr("whose tiles lie at heights of their own: leave the cell empty"));
}

TEST_F(DicomPaths, AFocalPlaneIsChosenByItsHeight) {
  for (std::size_t right = 0; right < 3; ++right) {
    SCOPED_TRACE(right);
    const double um = 1.5 * static_cast<double>(right);
    CraftedDicom full = ThreePlanes(right);
    full.more[0x00480303] = DicomElement(0x00480303, "UL", LittleEndian(3, 4));
    ExpectPaths(OpenOne(full, {um, ""}));
    full.more[0x00480008] =
        DicomElement(0x00480008, "SQ", DicomItem(DicomElement(0x0040074A, "DS", "-7.25")));
    ExpectPaths(OpenOne(full, {um - 7.25, ""}));
    EXPECT_THAT(Refusal(full, {um + 3, ""}), HasSubstr("it has -7.25, -5.75, -4.25 um"));
    CraftedDicom sparse = ThreePlanes(right);
    sparse.organization = "TILED_SPARSE";
    for (std::size_t i = 0; i < sparse.frames.size(); ++i) {
      const auto cell = static_cast<std::int32_t>(i % 20);
      sparse.places.push_back({64 * (cell / 5) + 1, 64 * (cell % 5) + 1});
      sparse.frame_paths.push_back(i < 60 ? "1" : "2");
      sparse.focal_um.push_back(1.5 * static_cast<double>(i / 20 % 3));
    }
    ExpectPaths(OpenOne(sparse, {um, ""}));
  }
  EXPECT_THAT(Refusal(TwoPaths(), {2, ""}),
              HasSubstr("column 'focal_plane': no focal plane at 2 um; it has 0 um"));
  ExpectPaths(OpenOne(TwoPaths(), {0, ""}));
}

TEST_F(DicomPaths, FocalPlanesOfAConcatenationAreCountedTogether) {
  const CraftedDicom whole = ThreePlanes(2);
  for (const std::uint32_t begin : {0u, 50u}) {
    CraftedDicom part = whole;
    part.concatenation = "1.2.9";
    part.first_frame = begin;
    part.number = std::to_string(begin + 1);
    part.more[0x00480303] = DicomElement(0x00480303, "UL", LittleEndian(3, 4));
    part.frames.assign(whole.frames.begin() + begin,
                       begin == 0 ? whole.frames.begin() + 50 : whole.frames.end());
    WriteDicom(folder_.File(StrCat("part", begin, ".dcm")), part);
  }
  ExpectPaths(Open("part50.dcm", {3, ""}));
}

TEST_F(DicomPaths, FocalPlanesOfInstancesEachAreChosenWithTheirLevels) {
  const auto write = [&](const std::string& name, CraftedDicom dicom, const std::string& um) {
    dicom.number = std::to_string(name[0]);
    dicom.more[0x00480008] =
        DicomElement(0x00480008, "SQ", DicomItem(DicomElement(0x0040074A, "DS", um)));
    WriteDicom(folder_.File(name), dicom);
  };
  CraftedDicom other = Grey(9);
  CraftedDicom half;
  half.width = 150;
  half.height = 100;
  half.samples = 1;
  half.photometric = "MONOCHROME2";
  half.frames = PatternFrames(half, 5);
  write("a.dcm", other, "0");
  write("b.dcm", Grey(kSeedOfDapi), "1.5");
  write("c.dcm", half, "0");
  EXPECT_THAT(Describe(Open("a.dcm").status()),
              HasSubstr("leave one in the folder: focal planes at 0, 1.5 um: a table"));
  const auto upper = Open("a.dcm", {1.5, ""});
  ASSERT_TRUE(upper.ok()) << Describe(upper.status());
  EXPECT_EQ((*upper)->layout().levels.size(), 1u);
  PatchReader reader(**upper);
  const auto pixels = reader.Read(0, Box2D(70, 80, 1, 1), 0);
  ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
  EXPECT_EQ((**pixels)[0], PatternAt(70, 80, 0, kSeedOfDapi));
  const auto lower = Open("b.dcm", {0, ""});
  ASSERT_TRUE(lower.ok()) << Describe(lower.status());
  EXPECT_EQ((*lower)->layout().levels.size(), 2u);
  EXPECT_THAT(Describe(Open("a.dcm", {4, ""}).status()), HasSubstr("it has 0, 1.5 um"));
}

TEST_F(DicomPaths, AnOpticalPathOfColoursIsChosenByItsName) {
  CraftedDicom colours;
  colours.frames = PatternFrames(colours, 6);
  const std::vector<std::string> second = PatternFrames(colours, 1);
  colours.frames.insert(colours.frames.end(), second.begin(), second.end());
  colours.more[0x00480105] =
      PathSequence(PathItem("1", "bright field") + PathItem("2", "polarised"));
  EXPECT_THAT(Refusal(colours),
              HasSubstr("a table of slides chooses one by its column optical_path"));
  for (const char* name : {"2", "polarised"}) {
    const auto image = OpenOne(colours, {std::nullopt, name});
    ASSERT_TRUE(image.ok()) << Describe(image.status());
    EXPECT_TRUE(IsRgb((*image)->layout()));
    PatchReader reader(**image);
    const auto pixels = reader.Read(0, Box2D(99, 199, 1, 1), 0);
    ASSERT_TRUE(pixels.ok()) << Describe(pixels.status());
    for (int c = 0; c < 3; ++c) {
      EXPECT_EQ((**pixels)[static_cast<std::size_t>(c)], PatternAt(99, 199, c, 1)) << c;
    }
  }
  EXPECT_THAT(Refusal(colours, {std::nullopt, "3"}),
              HasSubstr("column 'optical_path': no optical path '3'; it has 1, 2 (0048,0105)"));
  const auto grey = OpenOne(TwoPaths(), {std::nullopt, "CD8"});
  ASSERT_TRUE(grey.ok()) << Describe(grey.status());
  EXPECT_EQ((*grey)->layout().channels, 1);
}

TEST_F(DicomPaths, AChoiceIsForDicomSlides) {
  std::ofstream(folder_.File("a.txt")) << "no slide";
  const auto opened = OpenChosenSlide(Folders::OfThisUser(), folder_.File("a.txt"), {0, ""});
  EXPECT_THAT(Describe(opened.status()), HasSubstr("it is no DICOM slide: leave the cells empty"));
}

}  // namespace
}  // namespace patchbay::workers
