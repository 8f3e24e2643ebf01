// Masks written and read back, over every order of the axes.
#include "workers/sources/volumes/mask_file.h"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/sources/volumes/label_volume.h"
#include "workers/sources/volumes/patient_axes.h"

namespace patchbay::workers {
namespace {

constexpr Extent kMaskSize{3, 4, 5};

/// Axis z of the array runs along patient axis `axes[0]` (0 = z), and so on; those of which the bit
/// of `flips` is set run backwards. All numbers are floats' own.
Affine MaskAlong(const std::array<int, 3>& axes, unsigned flips) {
  constexpr double kSteps[] = {2.5, 0.75, 0.625};
  Affine affine;
  affine.origin = {-11.25, 23.5, 170.5};
  Vec3* const steps[] = {&affine.z, &affine.y, &affine.x};
  for (std::size_t i = 0; i < 3; ++i) {
    const double length = (flips >> i & 1) != 0 ? -kSteps[i] : kSteps[i];
    *steps[i] = {axes[i] == 2 ? length : 0, axes[i] == 1 ? length : 0, axes[i] == 0 ? length : 0};
  }
  return affine;
}

TEST(MaskFile, IsReadBackInEveryOrderOfTheAxes) {
  const Folders all = Folders::OfThisUser();
  const TemporaryFolder folder;
  std::vector<std::uint8_t> values;
  for (int i = 0; i < 60; ++i) values.push_back(static_cast<std::uint8_t>(i * 4 + 19));
  std::array<int, 3> axes = {0, 1, 2};
  int orders = 0;
  do {
    for (unsigned flips = 0; flips < 8; ++flips, ++orders) {
      SCOPED_TRACE(StrCat(axes[0], axes[1], axes[2], " flips ", flips));
      const VolumeMask mask{kMaskSize, MaskAlong(axes, flips), values, true};
      ASSERT_TRUE(WriteNiftiMask(all, folder.File("a.nii"), mask).ok());
      ASSERT_TRUE(WriteNiftiMask(all, folder.File("a.nii.gz"), mask).ok());
      ASSERT_TRUE(WriteNrrdMask(all, folder.File("a.nrrd"), mask).ok());
      for (const char* name : {"a.nii", "a.nii.gz", "a.nrrd"}) {
        const auto read = ReadLabelVolume(all, folder.File(name), {});
        ASSERT_TRUE(read.ok()) << name << read.status();
        EXPECT_EQ(read->values, values) << name;
        EXPECT_EQ(read->size, kMaskSize);
        EXPECT_EQ(LpsOf(read->affine), LpsOf(mask.affine)) << name;
        EXPECT_TRUE(read->ignores_255);
      }
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
  EXPECT_EQ(orders, 48);
}

TEST(MaskFile, OnlyAnExportIsMarkedAsOne) {
  const Folders all = Folders::OfThisUser();
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> values(60, 255);
  ASSERT_TRUE(WriteNiftiMask(all, folder.File("a.nii.gz"), {kMaskSize, Affine{}, values}).ok());
  ASSERT_TRUE(WriteNrrdMask(all, folder.File("a.nrrd"), {kMaskSize, Affine{}, values}).ok());
  EXPECT_FALSE(IsExportedVolumeMask(all, folder.File("a.nii.gz")));
  EXPECT_FALSE(IsExportedVolumeMask(all, folder.File("a.nrrd")));
  EXPECT_FALSE(IsExportedVolumeMask(all, folder.File("none")));
}

TEST(MaskFile, TheSameMaskIsTheSameFile) {
  const Folders all = Folders::OfThisUser();
  const TemporaryFolder folder;
  const std::vector<std::uint8_t> values(60, 7);
  ASSERT_TRUE(WriteNiftiMask(all, folder.File("a.nii.gz"), {kMaskSize, Affine{}, values}).ok());
  ASSERT_TRUE(WriteNiftiMask(all, folder.File("b.nii.gz"), {kMaskSize, Affine{}, values}).ok());
  EXPECT_EQ(*ReadFile(all, folder.File("a.nii.gz"), 1 << 20),
            *ReadFile(all, folder.File("b.nii.gz"), 1 << 20));
}

TEST(AxisOrders, TextAndInverseTakeAxesBack) {
  std::array<int, 3> axes = {0, 1, 2};
  do {
    for (unsigned flips = 0; flips < 8; ++flips) {
      const Affine before = MaskAlong(axes, flips);
      const AxisOrder order = CanonicalOrder(before);
      const auto read = AxisOrderFromText(order.ToString());
      ASSERT_TRUE(read.ok());
      EXPECT_EQ(read->from, order.from);
      EXPECT_EQ(read->flipped, order.flipped);
      const Extent size = Reordered(kMaskSize, order);
      EXPECT_EQ(Reordered(size, Inverse(order)), kMaskSize);
      EXPECT_EQ(LpsOf(Reordered(Reordered(before, kMaskSize, order), size, Inverse(order))),
                LpsOf(before));
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
  for (const char* wrong : {"", "z, y", "z, y, y", "z,y,x", "z, y, x, x", "-x"}) {
    EXPECT_FALSE(AxisOrderFromText(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace patchbay::workers
