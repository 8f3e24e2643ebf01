#include "ops/draws/factor.h"

namespace patchbay::ops {

std::string ChannelFactors::Text() const {
  std::string text = Digits(of[0], 2);
  for (int c = 1; c < channels; ++c) text += ", " + Digits(of[static_cast<std::size_t>(c)], 2);
  return text;
}

std::optional<ChannelFactors> DrawFactors(double p, const DrawRange& range, int channels,
                                          const PatchDraw& draw, std::uint32_t occurrence) {
  const auto first = draw.WordIf(p, occurrence);
  if (!first) return std::nullopt;
  ChannelFactors factors;
  factors.channels = channels;
  const DrawKey key = draw.KeyOf(occurrence);
  for (int c = 0; c < channels; ++c) {
    const std::uint32_t word = c == 0 ? *first : Draw(key, static_cast<std::uint32_t>(c)).word[1];
    factors.of[static_cast<std::size_t>(c)] = static_cast<float>(DrawnAroundOne(range, word));
  }
  return factors;
}

std::vector<plan::Option<FactorOptions>> FactorOptions::Table() {
  using O = FactorOptions;
  return {
      ProbabilityOption<O>(),
      plan::OptionOf(&O::factor,
                     {.name = "factor",
                      .min = 0,
                      .max = 10,
                      .help = "factor; half of the draws are below 1 if the range contains 1"})};
}

}  // namespace patchbay::ops
