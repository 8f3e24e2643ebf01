#include "runtime/core/extent.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/core/box.h"
#include "runtime/core/element.h"
#include "runtime/core/spacing.h"
#include "runtime/core/tensor_view.h"

namespace patchbay {
namespace {

TEST(Extent, CountsCellsRowMajorAndBack) {
  const Extent grid{3, 4, 5};
  for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
    EXPECT_TRUE(CellAt(grid, i).Inside(grid));
    EXPECT_EQ(IndexOf(grid, CellAt(grid, i)), i);
  }
  EXPECT_EQ(CellAt(grid, 1), Point(0, 0, 1));
  EXPECT_EQ(CellAt(grid, 20), Point(1, 0, 0));
  EXPECT_EQ(CellsOf({65, 64, 1}, {32, 32, 32}), Extent(3, 2, 1));
}

TEST(Extent, AFlatOneStaysFlatWhenHalved) {
  EXPECT_EQ(HalfOf(Flat(301, 270)), Flat(151, 135));
  EXPECT_EQ(HalfOf({45, 1, 2}), Extent(23, 1, 1));
  EXPECT_EQ(Flat(3, 4).ToString(), "3 x 4");
  EXPECT_EQ(Extent(2, 3, 4).ToString(), "2 x 3 x 4");
  EXPECT_TRUE(Extent(0, 3, 4).Empty());
  EXPECT_TRUE(Extent(4, 4, 4).Covers({4, 3, 2}));
  EXPECT_FALSE(Extent(4, 4, 4).Covers({1, 5, 1}));
}

TEST(Element, HoldsEveryValueOfItsTypeAndNoOther) {
  EXPECT_TRUE(ElementOf(-32768, DType::kInt16));
  EXPECT_FALSE(ElementOf(-32769, DType::kInt16));
  EXPECT_FALSE(ElementOf(32768, DType::kInt16));
  EXPECT_FALSE(ElementOf(0.5, DType::kInt16));
  EXPECT_TRUE(ElementOf(65535, DType::kUint16));
  EXPECT_FALSE(ElementOf(-1, DType::kUint16));
  EXPECT_FALSE(ElementOf(256, DType::kUint8));
  EXPECT_FALSE(ElementOf(std::ldexp(1.0, 63), DType::kInt64));
  EXPECT_TRUE(ElementOf(-std::ldexp(1.0, 63), DType::kInt64));
  EXPECT_FALSE(ElementOf(std::ldexp(1.0, 64), DType::kUint64));
  EXPECT_FALSE(ElementOf(std::nan(""), DType::kFloat32));
  EXPECT_FALSE(ElementOf(1e39, DType::kFloat32));
  EXPECT_FALSE(ElementOf(65520, DType::kFloat16));
  EXPECT_TRUE(ElementOf(65504, DType::kFloat16));
  EXPECT_FALSE(ElementOf(std::numeric_limits<double>::infinity(), DType::kFloat64));
  std::int16_t value;
  std::memcpy(&value, ElementOf(-1024, DType::kInt16)->data(), sizeof value);
  EXPECT_EQ(value, -1024);
  float real;
  std::memcpy(&real, ElementOf(0.1, DType::kFloat32)->data(), sizeof real);
  EXPECT_EQ(real, 0.1f);
}

TEST(Element, SaysItsRange) {
  EXPECT_EQ(RangeOf(DType::kInt16), "-32768 to 32767");
  EXPECT_EQ(RangeOf(DType::kUint8), "0 to 255");
  EXPECT_EQ(RangeOf(DType::kInt64), "-9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(RangeOf(DType::kUint64), "0 to 18446744073709551615");
  EXPECT_EQ(RangeOf(DType::kFloat32), "a finite float32");
}

TEST(Spacing, HasAUnitAnAxis) {
  Spacing spacing = SpacingOfMpp(0.5, 0.25);
  EXPECT_DOUBLE_EQ(spacing.MeanMpp().value_or(0), 0.375);
  spacing.y = AxisSpacing{0.5, LengthUnit::kMillimeter};
  EXPECT_DOUBLE_EQ(spacing.y->Micrometres(), 500);
  spacing.x.reset();
  EXPECT_FALSE(spacing.MeanMpp());
  for (const LengthUnit unit :
       {LengthUnit::kAngstrom, LengthUnit::kNanometer, LengthUnit::kMicrometer,
        LengthUnit::kMillimeter, LengthUnit::kCentimeter, LengthUnit::kMeter}) {
    EXPECT_EQ(LengthUnitFromName(NameOf(unit)), unit);
  }
  EXPECT_FALSE(LengthUnitFromName("inch"));
}

TEST(TensorView, GainsAndLosesADepth) {
  std::array<std::byte, 24> bytes{};
  const TensorView flat = ContiguousView<3>(bytes.data(), DType::kUint8, {2, 4, 3});
  const TensorView deep = WithDepth(flat);
  EXPECT_EQ(deep.rank, 4);
  EXPECT_EQ(deep.shape[0], 1);
  EXPECT_EQ(deep.shape[3], 3);
  EXPECT_EQ(deep.stride_bytes[1], 12);
  const TensorView slice = SliceOf(SliceOf(deep, 0), 1);
  EXPECT_EQ(slice.data, bytes.data() + 12);
  EXPECT_EQ(slice.rank, 2);
}

}  // namespace
}  // namespace patchbay
