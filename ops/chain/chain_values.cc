#include "ops/chain/chain_values.h"

#include <cstring>
#include <utility>

namespace patchbay::ops {
namespace {

template <typename T>
double ValueAt(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

template <typename T>
void MakeTyped(const Strided& source, const WindowMap& window, const ValueSteps& steps,
               const ValueTarget& target) {
  const std::size_t element = target.to == CastTo::kFloat32 ? 4
                              : target.to == CastTo::kUint8 ? 1
                                                            : 2;
  for (std::int64_t i = 0; i < window.out_height; ++i) {
    for (std::int64_t j = 0; j < window.out_width; ++j) {
      const PixelPlace place = SourceOf(window, i, j);
      std::byte* out = target.out + (i * window.out_width + j) * target.pixel_bytes;
      for (std::int64_t c = 0; c < source.channels; ++c, out += target.channel_bytes) {
        const double value = ValueAt<T>(source.At(place.y, place.x, c));
        const auto exact = static_cast<float>(steps.Apply(value, static_cast<std::size_t>(c)));
        const std::uint32_t bits = CastBits(exact, target.to);
        std::memcpy(out, &bits, element);
      }
    }
  }
}

}  // namespace

void ValueSteps::AddNormalize(std::vector<NormalizeChannel> channels) {
  steps_.emplace_back(std::move(channels));
}

void ValueSteps::AddCast(CastTo to) { steps_.emplace_back(to); }

double ValueSteps::Apply(double value, std::size_t channel) const {
  for (const auto& step : steps_) {
    if (const auto* to = std::get_if<CastTo>(&step)) {
      value = CastValue(CastBits(static_cast<float>(value), *to), *to);
      continue;
    }
    const NormalizeChannel& k = std::get<std::vector<NormalizeChannel>>(step)[channel];
    value = NormalizeValue(value, k.scale, k.mean, k.std);
  }
  return value;
}

bool HasValuePath(DType dtype) {
  return dtype == DType::kUint16 || dtype == DType::kInt16 || dtype == DType::kFloat32;
}

void MakeValues(const Strided& source, DType dtype, const WindowMap& window,
                const ValueSteps& steps, const ValueTarget& target) {
  if (dtype == DType::kUint16) return MakeTyped<std::uint16_t>(source, window, steps, target);
  if (dtype == DType::kInt16) return MakeTyped<std::int16_t>(source, window, steps, target);
  return MakeTyped<float>(source, window, steps, target);
}

}  // namespace patchbay::ops
