// Masks are told from images by their values.
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/workers/sources/slide_fixtures.h"
#include "tests/workers/sources/volumes/volume_fixtures.h"
#include "workers/sources/volumes/label_volume.h"

namespace patchbay::workers {
namespace {

std::string TextOf(const std::vector<double>& values) {
  ClassValues seen;
  for (const double value : values) {
    if (!seen.Add(value)) break;
  }
  return seen.ToString();
}

std::vector<double> Whole(int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(255 - i);
  return values;
}

TEST(ClassVoxels, FewWholeValuesOfAByteAreClasses) {
  EXPECT_EQ(TextOf({0, 5, 1, 5, 0}), "only 3 distinct values, all whole numbers up to 5");
  EXPECT_EQ(TextOf({0, 255}), "only 2 distinct values, all whole numbers up to 255");
  EXPECT_EQ(TextOf({0, 0}), "only 1 distinct value, all whole numbers up to 0");
  EXPECT_EQ(TextOf(Whole(128)), "only 128 distinct values, all whole numbers up to 255");
  EXPECT_EQ(TextOf(Whole(129)), "");
  for (const double other : {-1.0, 256.0, 0.5, std::nan(""), -HUGE_VAL, HUGE_VAL}) {
    EXPECT_EQ(TextOf({0, 1, other}), "") << other;
  }
  EXPECT_EQ(TextOf({}), "");
}

TEST(ClassVoxels, AVolumesValuesAreThoseThatItsScaleMakes) {
  TemporaryFolder folder;
  const std::string head =
      "NRRD0004\ntype: short\ndimension: 3\nsizes: 2 2 3\nspace: left-posterior-superior\n"
      "space directions: (1,0,0) (0,1,0) (0,0,1)\nspace origin: (0,0,0)\nendian: big\n"
      "encoding: raw\n\n";
  const auto classes = [&](const std::string& voxels) {
    const std::string path = folder.File("a.nrrd");
    std::ofstream(path, std::ios::binary) << head << voxels;
    const auto found = ClassesIn(Folders::OfThisUser(), VolumeFormat::kNrrd, path, nullptr);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : "";
  };
  std::string voxels(24, '\0');
  voxels[23] = 3;  // the last one, big endian
  EXPECT_EQ(classes(voxels), "only 2 distinct values, all whole numbers up to 3");
  voxels[22] = '\xff';  // negative
  EXPECT_EQ(classes(voxels), "");
  EXPECT_EQ(classes(voxels.substr(0, 20)), "") << "reading it says why";
  const auto cancelled =
      ClassesIn(Folders::OfThisUser(), VolumeFormat::kNrrd, folder.File("a.nrrd"),
                [] { return absl::CancelledError("no more"); });
  EXPECT_TRUE(cancelled.ok()) << "a file that is cut is not read";
  EXPECT_EQ(classes(std::string(24, '\0')), "only 1 distinct value, all whole numbers up to 0");
  EXPECT_TRUE(absl::IsCancelled(
      ClassesIn(Folders::OfThisUser(), VolumeFormat::kNrrd, folder.File("a.nrrd"), [] {
        return absl::CancelledError("no more");
      }).status()));
}

TEST(ClassVoxels, RealMasksAreKnownAndImagesAreNot) {
  SKIP_WITHOUT_DATA();
  const auto is_mask = [](const char* name) {
    const auto found = ClassesIn(Folders::OfThisUser(), FormatOf(Folders::OfThisUser(), Data(name)),
                                 Data(name), nullptr);
    return found.ok() && !found->empty();
  };
  for (const char* mask :
       {"nifti/totalsegmentator/example_seg.nii.gz", "ct/seg-dcmqi/liver_seg.nrrd",
        "ct/totalsegmentator-body-j2k/example_seg_dicom.nii.gz"}) {
    EXPECT_TRUE(is_mask(mask)) << mask;
  }
  for (const char* image : {"nifti/CT_pitch.nii.gz", "nifti/totalsegmentator/example_ct.nii.gz",
                            "nifti/variants/avg152T1_LR_nifti2.nii.gz"}) {
    EXPECT_FALSE(is_mask(image)) << image;
  }
}

}  // namespace
}  // namespace patchbay::workers
