// Where a volume's voxels lie in the patient, in millimetres. The one place that knows LPS and RAS.
#pragma once

#include <array>
#include <string>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// A place or direction in the patient: x to the left, y to posterior, z to superior (LPS, as
/// DICOM).
struct Vec3 {
  double x = 0, y = 0, z = 0;

  Vec3 operator+(const Vec3& o) const { return {x + o.x, y + o.y, z + o.z}; }
  Vec3 operator-(const Vec3& o) const { return {x - o.x, y - o.y, z - o.z}; }
  Vec3 operator*(double f) const { return {x * f, y * f, z * f}; }
};

double Dot(const Vec3& a, const Vec3& b);
Vec3 Cross(const Vec3& a, const Vec3& b);
double Norm(const Vec3& v);

/// From voxel (x, y, z) to millimetres in LPS: a step along each axis of the array, and the place
/// of voxel 0.
struct Affine {
  Vec3 x{1, 0, 0}, y{0, 1, 0}, z{0, 0, 1}, origin;

  Vec3 At(double i, double j, double k) const { return origin + x * i + y * j + z * k; }
};

/// Rows of a 4x4 matrix, from voxel (x, y, z, 1).
using Matrix4 = std::array<std::array<double, 4>, 4>;
Matrix4 LpsOf(const Affine& affine);
Matrix4 RasOf(const Affine& affine);
Affine FromRas(const Matrix4& ras);
Json ToJson(const Matrix4& matrix);
/// InvalidArgument for anything but the output of ToJson, and for axes without a length.
StatusOr<Affine> AffineFromLpsJson(const Json& matrix);

/// The voxel (x, y, z), between voxels too, at a place: Affine::At the other way round. Made once
/// for an affine, whose axes must not lie in one plane.
class VoxelOfPlace {
 public:
  explicit VoxelOfPlace(const Affine& affine);
  Vec3 operator()(const Vec3& place) const;

 private:
  Vec3 origin_, x_, y_, z_;  ///< rows of the inverse
};

/// The largest |cosine| between two axes; 0 for a grid without skew.
double SkewOf(const Affine& affine);
/// Headers of grids with more are refused.
inline constexpr double kMaxSkew = 1e-3;

/// The array axes that become z, y and x (0 = z, 1 = y, 2 = x), and the ones among them that run
/// backwards.
struct AxisOrder {
  std::array<int, 3> from{0, 1, 2};
  std::array<bool, 3> flipped{false, false, false};

  bool IsIdentity() const;
  /// "z, -y, x": the array's axes in the order of the new ones.
  std::string ToString() const;
};
/// InvalidArgument for anything but the text of AxisOrder::ToString.
StatusOr<AxisOrder> AxisOrderFromText(const std::string& text);
/// The order that takes axes back.
AxisOrder Inverse(const AxisOrder& order);

/// The order in which z runs to superior, y to posterior and x to the left, as nearly as axes can.
AxisOrder CanonicalOrder(const Affine& affine);
Extent Reordered(const Extent& size, const AxisOrder& order);
Affine Reordered(const Affine& affine, const Extent& size, const AxisOrder& order);

/// Where x, y and z run: "LPS" in canonical order, "RAS" for most NIfTI files.
std::string OrientationOf(const Affine& affine);

}  // namespace patchbay::workers
