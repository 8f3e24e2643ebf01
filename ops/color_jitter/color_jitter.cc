#include "ops/color_jitter/color_jitter.h"

#include <utility>

#include "ops/draws/draws.h"

namespace patchbay::ops {
std::optional<ColorJitter> DrawColorJitter(const plan::ColorJitterOptions& options,
                                           const DrawKey& key) {
  const PhiloxBlock first = Draw(key, 0), second = Draw(key, 1);
  if (!(UniformFloat(first.word[0]) < options.p)) return std::nullopt;
  ColorJitter jitter;
  // The order by its number in the factorial base.
  auto number = static_cast<std::uint32_t>(UniformBelow(std::uint64_t{first.word[1]} << 32, 24));
  for (std::uint32_t i = 0; i + 1 < kColorSteps; ++i) {
    const std::uint32_t left = kColorSteps - i;
    std::swap(jitter.order[i], jitter.order[i + number % left]);
    number /= left;
  }
  jitter.brightness = static_cast<float>(Drawn(options.brightness, second.word[0]));
  jitter.contrast = static_cast<float>(Drawn(options.contrast, second.word[1]));
  jitter.saturation = static_cast<float>(Drawn(options.saturation, second.word[2]));
  jitter.hue = static_cast<float>(Drawn(options.hue, second.word[3]));
  const bool nothing =
      jitter.brightness == 1 && jitter.contrast == 1 && jitter.saturation == 1 && jitter.hue == 0;
  if (nothing) return std::nullopt;
  return jitter;
}

}  // namespace patchbay::ops
