#include "workers/sources/volumes/patient_axes.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

/// The three steps in the order of array axes: z, y, x.
std::array<Vec3, 3> StepsOf(const Affine& affine) { return {affine.z, affine.y, affine.x}; }

double Along(const Vec3& v, int patient_axis) {
  return patient_axis == 0 ? v.z : patient_axis == 1 ? v.y : v.x;
}

double Cosine(const Vec3& a, const Vec3& b) {
  const double lengths = Norm(a) * Norm(b);
  return lengths > 0 ? std::abs(Dot(a, b)) / lengths : 1;
}

}  // namespace

double Dot(const Vec3& a, const Vec3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

Vec3 Cross(const Vec3& a, const Vec3& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

double Norm(const Vec3& v) { return std::sqrt(Dot(v, v)); }

Matrix4 LpsOf(const Affine& a) {
  return {{{a.x.x, a.y.x, a.z.x, a.origin.x},
           {a.x.y, a.y.y, a.z.y, a.origin.y},
           {a.x.z, a.y.z, a.z.z, a.origin.z},
           {0, 0, 0, 1}}};
}

Matrix4 RasOf(const Affine& affine) {
  Matrix4 m = LpsOf(affine);
  for (std::size_t row = 0; row < 2; ++row) {
    for (double& value : m[row]) value = value == 0 ? 0 : -value;
  }
  return m;
}

Affine FromRas(const Matrix4& m) {
  const auto column = [&m](std::size_t c) { return Vec3{-m[0][c], -m[1][c], m[2][c]}; };
  return {column(0), column(1), column(2), column(3)};
}

Json ToJson(const Matrix4& matrix) {
  Json rows = Json::array();
  for (const auto& row : matrix) rows.push_back({row[0], row[1], row[2], row[3]});
  return rows;
}

StatusOr<Affine> AffineFromLpsJson(const Json& matrix) {
  const auto wrong = [] { return InvalidArgument("affine: no matrix of 4 x 4 numbers"); };
  Matrix4 m{};
  if (!matrix.is_array() || matrix.size() != 4) return wrong();
  for (std::size_t row = 0; row < 4; ++row) {
    if (!matrix[row].is_array() || matrix[row].size() != 4) return wrong();
    for (std::size_t column = 0; column < 4; ++column) {
      const Json& value = matrix[row][column];
      if (!value.is_number() || !std::isfinite(value.get<double>())) return wrong();
      m[row][column] = value.get<double>();
    }
  }
  const auto column = [&m](std::size_t c) { return Vec3{m[0][c], m[1][c], m[2][c]}; };
  const Affine affine{column(0), column(1), column(2), column(3)};
  if (std::abs(Dot(Cross(affine.x, affine.y), affine.z)) > 1e-12) return affine;
  return InvalidArgument("affine: its axes lie in one plane");
}

VoxelOfPlace::VoxelOfPlace(const Affine& a) : origin_(a.origin) {
  const double volume = Dot(Cross(a.x, a.y), a.z);
  x_ = Cross(a.y, a.z) * (1 / volume);
  y_ = Cross(a.z, a.x) * (1 / volume);
  z_ = Cross(a.x, a.y) * (1 / volume);
}

Vec3 VoxelOfPlace::operator()(const Vec3& place) const {
  const Vec3 v = place - origin_;
  return {Dot(v, x_), Dot(v, y_), Dot(v, z_)};
}

double SkewOf(const Affine& a) {
  return std::max({Cosine(a.x, a.y), Cosine(a.y, a.z), Cosine(a.x, a.z)});
}

bool AxisOrder::IsIdentity() const {
  return from == std::array<int, 3>{0, 1, 2} && flipped == std::array<bool, 3>{};
}

std::string AxisOrder::ToString() const {
  std::string text;
  for (std::size_t i = 0; i < 3; ++i) {
    text += StrCat(i == 0 ? "" : ", ", flipped[i] ? "-" : "", std::string(1, "zyx"[from[i]]));
  }
  return text;
}

StatusOr<AxisOrder> AxisOrderFromText(const std::string& text) {
  AxisOrder order;
  do {
    for (unsigned flips = 0; flips < 8; ++flips) {
      for (unsigned i = 0; i < 3; ++i) order.flipped[i] = (flips >> i & 1) != 0;
      if (order.ToString() == text) return order;
    }
  } while (std::next_permutation(order.from.begin(), order.from.end()));
  return InvalidArgument("axes: no order of z, y and x");
}

AxisOrder Inverse(const AxisOrder& order) {
  AxisOrder back;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto from = static_cast<std::size_t>(order.from[i]);
    back.from[from] = static_cast<int>(i);
    back.flipped[from] = order.flipped[i];
  }
  return back;
}

AxisOrder CanonicalOrder(const Affine& affine) {
  const std::array<Vec3, 3> steps = StepsOf(affine);
  std::array<int, 3> order = {0, 1, 2}, best = order;
  double most = -1;
  do {  // the best of the six ways to name the axes lies closest to the patient's
    double product = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      const Vec3& step = steps[static_cast<std::size_t>(order[i])];
      product *= std::abs(Along(step, static_cast<int>(i))) / std::max(Norm(step), 1e-12);
    }
    if (product > most) {
      most = product;
      best = order;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  AxisOrder result;
  result.from = best;
  for (std::size_t i = 0; i < 3; ++i) {
    result.flipped[i] = Along(steps[static_cast<std::size_t>(best[i])], static_cast<int>(i)) < 0;
  }
  return result;
}

Extent Reordered(const Extent& size, const AxisOrder& order) {
  const std::int64_t sides[3] = {size.z, size.y, size.x};
  return {sides[order.from[0]], sides[order.from[1]], sides[order.from[2]]};
}

Affine Reordered(const Affine& affine, const Extent& size, const AxisOrder& order) {
  const std::array<Vec3, 3> steps = StepsOf(affine);
  const std::int64_t sides[3] = {size.z, size.y, size.x};
  std::array<Vec3, 3> out;
  Affine result;
  result.origin = affine.origin;
  for (std::size_t i = 0; i < 3; ++i) {
    const int from = order.from[i];
    out[i] = steps[static_cast<std::size_t>(from)];
    if (!order.flipped[i]) continue;
    result.origin = result.origin + out[i] * static_cast<double>(sides[from] - 1);
    out[i] = out[i] * -1;
  }
  result.z = out[0];
  result.y = out[1];
  result.x = out[2];
  return result;
}

std::string OrientationOf(const Affine& affine) {
  std::string text;
  for (const Vec3& step : {affine.x, affine.y, affine.z}) {
    const double parts[3] = {std::abs(step.x), std::abs(step.y), std::abs(step.z)};
    if (parts[0] >= parts[1] && parts[0] >= parts[2]) {
      text += step.x >= 0 ? 'L' : 'R';
    } else if (parts[1] >= parts[2]) {
      text += step.y >= 0 ? 'P' : 'A';
    } else {
      text += step.z >= 0 ? 'S' : 'I';
    }
  }
  return text;
}

}  // namespace patchbay::workers
