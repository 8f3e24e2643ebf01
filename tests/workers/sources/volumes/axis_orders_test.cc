// Axes that are permuted and flipped, of unequal sides, in all 48 orders: every voxel stays where
// it lies in the patient.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "workers/sources/volumes/patient_axes.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {
namespace {

constexpr Extent kOrderedSize{3, 5, 7};

/// An array whose axis z runs along patient axis `axes[0]` (0 = z, 1 = y, 2 = x), and so on; axes
/// of which the bit of `flips` is set run backwards. Steps and sides all differ.
Affine AffineAlong(const std::array<int, 3>& axes, unsigned flips) {
  constexpr double kSteps[] = {5, 0.7, 0.9};
  Affine affine;
  affine.origin = {-11, 23, 170.5};
  Vec3* const steps[] = {&affine.z, &affine.y, &affine.x};
  for (std::size_t i = 0; i < 3; ++i) {
    const double length = (flips >> i & 1) != 0 ? -kSteps[i] : kSteps[i];
    *steps[i] = {axes[i] == 2 ? length : 0, axes[i] == 1 ? length : 0, axes[i] == 0 ? length : 0};
  }
  return affine;
}

/// Voxels that are their place's number.
template <typename Value>
Volume Numbered(const Affine& affine, DType dtype) {
  Volume volume;
  volume.size = kOrderedSize;
  volume.dtype = dtype;
  volume.affine = affine;
  EXPECT_TRUE(AllocateVoxels(volume).ok());
  for (std::int64_t i = 0; i < kOrderedSize.Pixels(); ++i) {
    const auto value = static_cast<Value>(i);
    std::memcpy(volume.voxels.data() + static_cast<std::size_t>(i) * sizeof(Value), &value,
                sizeof(Value));
  }
  return volume;
}

/// Every voxel of `volume` is the one of the numbered array that lies at its place.
template <typename Value>
void ExpectInPlace(const Volume& volume, const Affine& before) {
  const VoxelOfPlace old_voxel(before);
  std::int64_t at = 0;
  for (std::int64_t z = 0; z < volume.size.z; ++z) {
    for (std::int64_t y = 0; y < volume.size.y; ++y) {
      for (std::int64_t x = 0; x < volume.size.x; ++x, ++at) {
        Value value{};
        std::memcpy(&value, volume.voxels.data() + static_cast<std::size_t>(at) * sizeof(Value),
                    sizeof(Value));
        const Vec3 from = old_voxel(volume.affine.At(static_cast<double>(x), static_cast<double>(y),
                                                     static_cast<double>(z)));
        const std::int64_t number =
            (std::lround(from.z) * kOrderedSize.y + std::lround(from.y)) * kOrderedSize.x +
            std::lround(from.x);
        ASSERT_EQ(static_cast<std::int64_t>(value), number) << z << ", " << y << ", " << x;
      }
    }
  }
}

/// The slices, stacked along the array's z before, lie where their axis has them now.
void ExpectSlicesInPlace(const Volume& volume) {
  ASSERT_EQ(volume.slice_positions.size(), static_cast<std::size_t>(kOrderedSize.z));
  for (std::size_t i = 0; i < volume.slice_positions.size(); ++i) {
    const auto at = static_cast<double>(i);
    const char axis = volume.slice_axis;
    const Vec3 here =
        volume.affine.At(axis == 'x' ? at : 0, axis == 'y' ? at : 0, axis == 'z' ? at : 0);
    const Vec3 step = axis == 'x'   ? volume.affine.x
                      : axis == 'y' ? volume.affine.y
                                    : volume.affine.z;
    EXPECT_NEAR(Dot(volume.slice_positions[i] - here, step), 0, 1e-9) << axis << i;
  }
}

TEST(AxisOrders, AllOf48BecomeCanonicalAndEveryVoxelStaysInItsPlace) {
  std::array<int, 3> axes = {0, 1, 2};
  int orders = 0;
  do {
    for (unsigned flips = 0; flips < 8; ++flips, ++orders) {
      SCOPED_TRACE(StrCat(axes[0], axes[1], axes[2], " flips ", flips));
      const Affine before = AffineAlong(axes, flips);
      const AxisOrder order = CanonicalOrder(before);
      Volume shorts = Numbered<std::int16_t>(before, DType::kInt16);
      for (int i = 0; i < kOrderedSize.z; ++i) shorts.slice_positions.push_back(before.At(0, 0, i));
      Reorder(shorts, order);
      ExpectSlicesInPlace(shorts);
      EXPECT_EQ(shorts.size, Reordered(kOrderedSize, order));
      EXPECT_EQ(OrientationOf(shorts.affine), "LPS");
      EXPECT_TRUE(CanonicalOrder(shorts.affine).IsIdentity());
      const std::int64_t sides[] = {kOrderedSize.z, kOrderedSize.y, kOrderedSize.x};
      const std::int64_t now[] = {shorts.size.z, shorts.size.y, shorts.size.x};
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(now[axes[i]], sides[i]);
      ExpectInPlace<std::int16_t>(shorts, before);
      Volume floats = Numbered<float>(before, DType::kFloat32);
      Reorder(floats, order);
      ExpectInPlace<float>(floats, before);
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
  EXPECT_EQ(orders, 48);
}

TEST(AxisOrders, OrdersNearlyAlongTheAxesAreTakenAsThose) {
  Affine oblique = AffineAlong({1, 2, 0}, 5);
  for (Vec3* step : {&oblique.x, &oblique.y, &oblique.z}) {
    *step = *step + Vec3{0.1 * step->y, -0.1 * step->x, 0};
  }
  const AxisOrder order = CanonicalOrder(oblique),
                  straight = CanonicalOrder(AffineAlong({1, 2, 0}, 5));
  EXPECT_EQ(order.from, straight.from);
  EXPECT_EQ(order.flipped, straight.flipped);
}

}  // namespace
}  // namespace patchbay::workers
