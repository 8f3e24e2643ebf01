#include "ops/spectral/spectral_sums.h"

#include <limits>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

Status WouldOverflow(std::string_view counter) {
  return ResourceExhausted("merge spectral sums: ", counter, " would overflow");
}

bool CanAdd(std::uint64_t a, std::uint64_t b) { return a <= ~b; }
bool CanAdd(absl::uint128 a, absl::uint128 b) { return a <= ~b; }

template <typename List>
bool CanAddAll(const List& from, const List& into) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!CanAdd(from[i], into[i])) return false;
  }
  return true;
}

template <typename List>
void AddAll(const List& from, List& into) {
  for (std::size_t i = 0; i < from.size(); ++i) into[i] += from[i];
}

Status CheckCounts(const SpectralSums& from, const SpectralSums& into) {
  if (from.frames > kMaxSpectralFrames || into.frames > kMaxSpectralFrames - from.frames) {
    return WouldOverflow("frames");
  }
  if (!CanAdd(from.sum_q, into.sum_q)) return WouldOverflow("sum of q");
  if (!CanAdd(from.sum_qq, into.sum_qq)) return WouldOverflow("sum of q^2");
  if (!CanAddAll(from.histogram, into.histogram)) return WouldOverflow("histogram");
  if (!CanAddAll(from.ring_power, into.ring_power)) return WouldOverflow("ring power");
  if (!CanAddAll(from.coefficient_q, into.coefficient_q) ||
      !CanAddAll(from.coefficient_qq, into.coefficient_qq)) {
    return WouldOverflow("coefficients");
  }
  return absl::OkStatus();
}

}  // namespace

SpectralSums::SpectralSums(const plan::SpectralOptions& options) {
  const auto frame = static_cast<std::size_t>(options.frame);
  ring_power.resize(frame / 2 + 1);
  if (options.coefficients) {
    coefficient_q.resize(frame * (frame / 2 + 1));
    coefficient_qq.resize(frame * (frame / 2 + 1));
  }
}

Status Merge(const SpectralSums& from, SpectralSums& into) {
  if (from.ring_power.size() != into.ring_power.size()) {
    return InvalidArgument("merge spectral sums: frames of ", 2 * (from.ring_power.size() - 1),
                           " into ", 2 * (into.ring_power.size() - 1));
  }
  if (from.coefficient_q.size() != into.coefficient_q.size() ||
      from.coefficient_qq.size() != into.coefficient_qq.size()) {
    return InvalidArgument(
        "merge spectral sums: only one of the two has the sums of every coefficient");
  }
  PB_RETURN_IF_ERROR(CheckCounts(from, into));
  into.frames += from.frames;
  into.sum_q += from.sum_q;
  into.sum_qq += from.sum_qq;
  AddAll(from.histogram, into.histogram);
  AddAll(from.ring_power, into.ring_power);
  AddAll(from.coefficient_q, into.coefficient_q);
  AddAll(from.coefficient_qq, into.coefficient_qq);
  return absl::OkStatus();
}

}  // namespace patchbay::ops
