// DICOM SEG of a series, read back; its limits; the series' identity.
#include "workers/sources/volumes/segmentation_writer.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"
#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/dicom_writer.h"
#include "workers/sources/volumes/label_volume.h"

namespace patchbay::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Texts = std::map<std::pair<unsigned, unsigned>, std::string>;

constexpr std::int64_t kRows = 3, kColumns = 5;
constexpr std::pair<unsigned, unsigned> kInstance{0x0008, 0x0018}, kPatientName{0x0010, 0x0010},
    kStudy{0x0020, 0x000d}, kFrame{0x0020, 0x0052};

const Folders& All() {
  static const Folders all = Folders::OfThisUser();
  return all;
}

/// A series of `slices` oblique slices, the first file the highest. `changed` holds for each.
DicomSeries WriteSeries(const TemporaryFolder& folder, std::int64_t slices,
                        const Texts& changed = {}) {
  for (std::int64_t k = 0; k < slices; ++k) {
    WrittenFile file;
    file.texts = {{{0x0008, 0x0005}, "ISO_IR 100"},
                  {{0x0008, 0x0016}, "1.2.840.10008.5.1.4.1.1.2"},
                  {kInstance, StrCat("1.2.3.", k + 1)},
                  {{0x0008, 0x0050}, "ACC-77"},
                  {{0x0008, 0x0060}, "CT"},
                  {kPatientName, "M\xfcller^Jos\xe9"},
                  {{0x0010, 0x0020}, "ID-4711"},
                  {kStudy, "1.2.3.100"},
                  {{0x0020, 0x000e}, "1.2.3.200"},
                  {kFrame, "1.2.3.300"},
                  {{0x0018, 0x0060}, "120"}};
    for (const auto& [tag, text] : changed) file.texts[tag] = text;
    WrittenSlice slice;
    slice.rows = kRows;
    slice.columns = kColumns;
    slice.values.assign(static_cast<std::size_t>(kRows * kColumns), 24);
    slice.row = {0.8, 0.6, 0};
    slice.column = {0, 0, -1};
    slice.position =
        Vec3{-10.5, 20.25, 7} + Vec3{-0.6, 0.8, 0} * (2.5 * static_cast<double>(slices - k));
    slice.row_step = 0.75;
    slice.column_step = 0.625;
    file.frames = {slice};
    EXPECT_TRUE(WriteDicom(All(), folder.File(StrCat("s", 1000 + k, ".dcm")), file).ok());
  }
  const auto all = SeriesBelow(folder.path());
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? DicomSeries{} : all.front();
}

WrittenSegmentation Two(const std::vector<std::uint8_t>& values) {
  return {.title = "lesions",
          .segments = {{"liver", 3, {200, 30, 30}}, {"vessel", 7, {30, 30, 200}}},
          .values = values,
          .content = "digest",
          .made = 1'700'000'000};
}

StatusOr<std::uint64_t> Write(const std::string& path, const DicomSeries& series,
                              const WrittenSegmentation& segmentation) {
  return WriteDicomSegmentation(All(), path, series, Judge(series).order, segmentation);
}

TEST(SegmentationWriter, ReadsBackOnTheSlicesOfTheSeries) {
  const TemporaryFolder folder, out;
  const DicomSeries series = WriteSeries(folder, 4);
  std::vector<std::uint8_t> values;
  for (int i = 0; i < 60; ++i)
    values.push_back(static_cast<std::uint8_t>(i % 7 == 0 ? 3 : i % 5 == 1 ? 7 : 255));
  ASSERT_TRUE(Write(out.File("a.dcm"), series, Two(values)).ok());
  const auto read = ReadLabelVolume(All(), out.File("a.dcm"), {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->segments, ElementsAre("liver", "vessel"));
  EXPECT_EQ(read->frame_of_reference, "1.2.3.300");
  const Affine affine = AffineOf(series, Judge(series));
  for (const Vec3& at : {Vec3{}, Vec3{4, 0, 0}, Vec3{0, 2, 0}, Vec3{0, 0, 3}}) {
    EXPECT_LT(Norm(read->affine.At(at.x, at.y, at.z) - affine.At(at.x, at.y, at.z)), 1e-9);
  }
  std::vector<std::uint8_t> painted(values.size(), 255);
  ASSERT_TRUE(read->paint(0, 3, painted).ok());
  ASSERT_TRUE(read->paint(1, 7, painted).ok());
  EXPECT_EQ(painted, values);
}

TEST(SegmentationWriter, TheFileOfTheIdentityIsItsOwnersAlone) {
  const TemporaryFolder folder, out;
  const DicomSeries series = WriteSeries(folder, 3);
  const std::vector<std::uint8_t> values(45, 3);
  std::filesystem::copy_file(folder.File("s1000.dcm"), out.File("a.dcm"));
  std::filesystem::permissions(out.File("a.dcm"), std::filesystem::perms(0644));
  ASSERT_TRUE(Write(out.File("a.dcm"), series, Two(values)).ok());
  EXPECT_EQ(std::filesystem::status(out.File("a.dcm")).permissions(), std::filesystem::perms(0600));
  const auto bytes = ReadFile(All(), out.File("a.dcm"), 1 << 20);
  ASSERT_TRUE(bytes.ok());
  for (const char* text : {"M\xfcller^Jos\xe9", "ID-4711", "ACC-77", "1.2.3.100", "ISO_IR 100"}) {
    EXPECT_THAT(*bytes, HasSubstr(text));
  }
}

TEST(SegmentationWriter, TheSameContentIsTheSameInstanceAndAnotherNameOrTimeIsNot) {
  const TemporaryFolder folder, out;
  const DicomSeries series = WriteSeries(folder, 3);
  const std::vector<std::uint8_t> values(45, 7);
  const auto uid = [&](const WrittenSegmentation& written) {
    EXPECT_TRUE(Write(out.File("a.dcm"), series, written).ok());
    const auto bytes = ReadFile(All(), out.File("a.dcm"), 1 << 20);
    const std::size_t at = bytes->find("2.25.");
    return bytes->substr(at, bytes->find('\0', at) - at);
  };
  WrittenSegmentation other = Two(values), later = Two(values);
  other.title = "vessels";
  later.made += 1;
  EXPECT_EQ(uid(Two(values)), uid(Two(values)));
  EXPECT_NE(uid(Two(values)), uid(other));
  EXPECT_NE(uid(Two(values)), uid(later));
}

TEST(SegmentationWriter, RefusesWhatDicomHasNoRoomFor) {
  const TemporaryFolder folder, out;
  const DicomSeries series = WriteSeries(folder, 70);
  std::vector<std::uint8_t> values(70 * 15, 255);
  EXPECT_THAT(Write(out.File("a.dcm"), series, Two(values)).status().message(),
              HasSubstr("0 slices with voxels of a segment, of 1 to 16384"));
  WrittenSegmentation many = Two(values);
  many.segments.clear();
  // 15 voxels a slice for 240 segments: a segment may stand for a value more than once.
  for (int i = 0; i < 240; ++i) many.segments.push_back({StrCat("c", i), 3, {}});
  std::fill(values.begin(), values.end(), std::uint8_t{3});
  EXPECT_THAT(Write(out.File("a.dcm"), series, many).status().message(),
              HasSubstr("16800 slices with voxels of a segment, of 1 to 16384"));
  WrittenSegmentation named = Two(values);
  named.segments[0].name = std::string(64, 'a');
  EXPECT_TRUE(Write(out.File("b.dcm"), series, named).ok());
  named.segments[0].name += 'a';
  EXPECT_THAT(Write(out.File("a.dcm"), series, named).status().message(),
              HasSubstr("its name is longer than 64 characters"));
  EXPECT_FALSE(std::filesystem::exists(out.File("a.dcm")));
}

TEST(SegmentationWriter, RefusesASeriesThatIsNoneAndSaysNothingOfIt) {
  struct Row {
    Texts changed;
    const char* says;
  };
  const std::string long_name(5000, 'N');
  const Row rows[] = {
      {{{kInstance, ""}}, "no instance UID"},
      {{{kStudy, ""}}, "no study"},
      {{{kFrame, ""}}, "no frame of reference"},
      {{{kPatientName, long_name}}, "longer than 1000 bytes"},
      {{{kPatientName, std::string(1001, 'N')}}, "longer than 1000 bytes"},
  };
  const std::vector<std::uint8_t> values(45, 3);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.says);
    const TemporaryFolder folder, out;
    const DicomSeries series = WriteSeries(folder, 3, row.changed);
    const Status refused = Write(out.File("a.dcm"), series, Two(values)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr(row.says));
    for (const char* known : {"4711", "ACC", "ller", "NNN", "1.2.3", "s1000"}) {
      EXPECT_THAT(refused.message(), Not(HasSubstr(known)));
    }
    EXPECT_TRUE(std::filesystem::is_empty(out.path()));
  }
}

}  // namespace
}  // namespace patchbay::workers
