#include "ops/chain/row_loops.h"

#include <algorithm>
#include <cstring>

#include "ops/chain/row_loop_templates.h"
#include "ops/lanes/processor.h"

namespace patchbay::ops {
namespace {

template <typename T>
struct TypedPixels {
  static float At(const Strided& source, std::int64_t y, std::int64_t x, std::int64_t c) {
    T value;
    std::memcpy(&value, source.At(y, x, c), sizeof value);
    return static_cast<float>(value);
  }
};

/// Calls `run` with the reader of the type.
template <typename Run>
void WithType(DType dtype, Run&& run) {
  switch (dtype) {
    case DType::kUint8:
      return run(TypedPixels<std::uint8_t>{});
    case DType::kUint16:
      return run(TypedPixels<std::uint16_t>{});
    case DType::kInt16:
      return run(TypedPixels<std::int16_t>{});
    default:
      return run(TypedPixels<float>{});
  }
}

}  // namespace

bool FitsRgbGather(const Strided& source, DType dtype) {
  const std::int64_t bytes = (source.height - 1) * source.row_bytes + 3 * source.width;
  return dtype == DType::kUint8 && source.channels == 3 && source.channel_bytes == 1 &&
         source.column_bytes == 3 && source.row_bytes >= 3 * source.width && source.width >= 2 &&
         bytes >= 8 && bytes < (std::int64_t{1} << 31);
}

void GatherAny(const PixelRow& pixels, const FloatRows& rows) {
  const Strided& source = *pixels.source;
  WithType(pixels.dtype, [&](auto typed) {
    using Typed = decltype(typed);
    for (std::int64_t j = 0; j < rows.width; ++j) {
      const ScalarLanes y{pixels.at_y[j]}, x{pixels.at_x[j]};
      const ScalarLanes y_before = PixelBefore(y, pixels.geometry->fold_y);
      const ScalarLanes x_before = PixelBefore(x, pixels.geometry->fold_x);
      const ScalarLanes part_y = y - y_before, part_x = x - x_before;
      const auto y0 = static_cast<std::int64_t>(y_before.v);
      const auto x0 = static_cast<std::int64_t>(x_before.v);
      const std::int64_t y1 = std::min(y0 + 1, source.height - 1);
      const std::int64_t x1 = std::min(x0 + 1, source.width - 1);
      for (int c = 0; c < rows.channels; ++c) {
        const ScalarLanes above = Between(ScalarLanes{Typed::At(source, y0, x0, c)},
                                          ScalarLanes{Typed::At(source, y0, x1, c)}, part_x);
        const ScalarLanes below = Between(ScalarLanes{Typed::At(source, y1, x0, c)},
                                          ScalarLanes{Typed::At(source, y1, x1, c)}, part_x);
        rows.Row(c)[j] = Between(above, below, part_y).v;
      }
    }
  });
}

void GatherNearest(const PixelRow& pixels, std::int64_t width, std::uint8_t* out) {
  for (std::int64_t j = 0; j < width; ++j) {
    const auto y = static_cast<std::int64_t>(pixels.at_y[j] + 0.5f);
    const auto x = static_cast<std::int64_t>(pixels.at_x[j] + 0.5f);
    out[j] = std::to_integer<std::uint8_t>(*pixels.source->At(y, x, 0));
  }
}

void CopyPixels(const Strided& source, DType dtype, const WindowMap& window, std::int64_t row,
                const FloatRows& rows) {
  WithType(dtype, [&](auto typed) {
    using Typed = decltype(typed);
    for (std::int64_t j = 0; j < rows.width; ++j) {
      const PixelPlace place = SourceOf(window, row, j);
      for (int c = 0; c < rows.channels; ++c) {
        rows.Row(c)[j] = Typed::At(source, place.y, place.x, c);
      }
    }
  });
}

void Interleave(const FloatRows& rows, const RowTarget& target) {
  const std::int64_t element = ElementBytes(target.to);
  for (int c = 0; c < rows.channels; ++c) {
    const std::byte* from = target.room + c * rows.stride * element;
    std::byte* to = target.out + c * target.channel_bytes;
    for (std::int64_t j = 0; j < rows.width; ++j, to += rows.channels * element) {
      std::memcpy(to, from + j * element, static_cast<std::size_t>(element));
    }
  }
}

void ApplyExactly(const ExactStep& step, const FloatRows& rows) {
  constexpr std::int64_t kAtOnce = 64;
  double value[kAtOnce];
  for (int c = 0; c < rows.channels; ++c) {
    const StepValues<AnyPointStep> steps = StepsOf(step, c);
    for (std::int64_t first = 0; first < rows.width; first += kAtOnce) {
      float* const row = rows.Row(c) + first;
      const std::int64_t count = std::min(kAtOnce, rows.width - first);
      for (std::int64_t j = 0; j < count; ++j) value[j] = row[j];
      for (int k = 0; k < steps.count; ++k) {
        VisitStep(steps.at[k], [&](const auto& one) {
          if constexpr (IsByValue<std::decay_t<decltype(one)>>::value) {
            for (std::int64_t j = 0; j < count; ++j) value[j] = Exactly(one, value[j]);
          }
        });
      }
      for (std::int64_t j = 0; j < count; ++j) row[j] = static_cast<float>(value[j]);
    }
  }
}

const RowLoops& ScalarRowLoops() {
  static constexpr RowLoops kLoops = LoopsOf<ScalarLanes>("scalar");
  return kLoops;
}

const RowLoops& LoopsAt(CpuLevel level) {
  if (level == CpuLevel::kTable) return ScalarRowLoops();
  return level == CpuLevel::kBest && HasAvx512() ? Avx512RowLoops() : Avx2RowLoops();
}

}  // namespace patchbay::ops
