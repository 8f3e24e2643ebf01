#include "ops/normalize/normalize.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ops/steps/op_program.h"
#include "runtime/core/channels.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

/// The largest value of uint8 images.
constexpr double kWhite = 255;

double Most(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

/// The fault of the numbers for values of 0 to 255; empty when there is none.
std::string FaultForBytes(const Json& json) {
  const auto options = plan::ReadOptions<NormalizeOptions>(json);
  const double most = std::max(Most(options.mean), Most(options.std));
  if (options.scale == kWhite && most > 1) {
    return StrCat("a mean or std of ", most,
                  " with scale: 255, which makes the values 0 to 1: statistics of values of 0 to "
                  "255 go with scale: 1");
  }
  const bool of_unit = std::all_of(options.mean.begin(), options.mean.end(),
                                   [](double mean) { return mean >= 0 && mean <= 1; });
  const bool shifts = Most(options.mean) > 0 || Most(options.std) < 1;
  if (options.scale != 1 || !of_unit || !shifts) return "";
  return StrCat("a mean of ", Most(options.mean),
                " with scale: 1, which leaves the values 0 to 255: statistics of values of 0 to 1 "
                "go with scale: 255, the default");
}

/// Several of normalize as value * slope + offset, composed in double and rounded once.
class ScaledChannels : public StepMaker {
 public:
  /// `zero` has the sign that a volume's offset of 0 has.
  void Add(const std::vector<NormalizeChannel>& channels, double zero) {
    exact_.resize(channels.size(), {1, zero, 1});
    lines_.resize(channels.size());
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const NormalizeChannel& k = channels[c];
      double& slope = exact_[c].scale;
      double& offset = exact_[c].mean;
      slope = slope / k.scale / k.std;
      offset = (offset / k.scale - k.mean) / k.std;
      lines_[c] = {static_cast<float>(slope), static_cast<float>(offset)};
    }
  }
  void Draw(const PatchDraw& /*draw*/, StepSink& sink) const override {
    sink.Add(ScaleStep{{lines_.data(), static_cast<int>(lines_.size())}});
  }

 private:
  std::vector<NormalizeChannel> exact_;  ///< slope in `scale`, offset in `mean`
  std::vector<ValueLine> lines_;
};

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const auto normalize = plan::ReadOptions<NormalizeOptions>(step.options);
  const auto channels = NormalizeChannels(normalize, program.shape().channels);
  if (!channels.ok()) return plan::WrongOp(step.key, MessageOf(channels.status()));
  program.Shared<ScaledChannels>().Add(*channels, program.shape().in_depth ? -0.0 : 0.0);
  for (int c = 0; c < program.shape().channels; ++c) {
    program.AddExact(c, NormalizeStep{(*channels)[static_cast<std::size_t>(c)]});
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<NormalizeOptions>> NormalizeOptions::Table() {
  using O = NormalizeOptions;
  return {
      plan::OptionOf(&O::scale,
                     {.name = "scale", .help = "the input is divided by this first; above 0"}),
      plan::OptionOf(&O::mean, {.name = "mean",
                                .min_items = 1,
                                .max_items = kMaxChannels,
                                .help = "after scaling; one for all channels, or one for each"}),
      plan::OptionOf(&O::std,
                     {.name = "std",
                      .min_items = 1,
                      .max_items = kMaxChannels,
                      .help = "after scaling; one for all channels, or one for each; above 0"})};
}

Status NormalizeOptions::Check() const {
  const auto finite = [](double v) { return std::isfinite(v); };
  const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
  if (!positive(scale)) return InvalidArgument("scale must be above 0");
  if (!std::all_of(mean.begin(), mean.end(), finite)) return InvalidArgument("mean must be finite");
  if (!std::all_of(std.begin(), std.end(), positive)) {
    return InvalidArgument("std must be above 0 in every channel");
  }
  return absl::OkStatus();
}

Status NormalizeOptions::CheckChannels(std::size_t channels) const {
  const auto fits = [channels](const std::vector<double>& list) {
    return list.size() == 1 || list.size() == channels;
  };
  if (fits(mean) && fits(std)) return absl::OkStatus();
  return InvalidArgument(mean.size(), " means and ", std.size(), " stds for ", channels,
                         " channels: expected 1 or ", channels, " of each");
}

plan::OpRow DescribeNormalize() {
  return {.number = NormalizeOptions::kNumber,
          .keys = plan::KeysOf<NormalizeOptions>("normalize", "(x / scale - mean) / std"),
          .compile = Compile,
          .scale = plan::OpScale::kNormalised,
          .example = {{"mean", Json::array({0.7})}, {"std", Json::array({0.2})}},
          .channels =
              [](const Json& options) {
                const auto normalize = plan::ReadOptions<NormalizeOptions>(options);
                return std::max(normalize.mean.size(), normalize.std.size());
              },
          .check_channels =
              [](const Json& options, std::size_t channels) {
                return plan::ReadOptions<NormalizeOptions>(options).CheckChannels(channels);
              },
          .fault_for_bytes = FaultForBytes};
}

StatusOr<std::vector<NormalizeChannel>> NormalizeChannels(const NormalizeOptions& options,
                                                          int channels) {
  const auto n = static_cast<std::size_t>(channels);
  PB_RETURN_IF_ERROR(options.CheckChannels(n));
  PB_RETURN_IF_ERROR(options.Check());
  std::vector<NormalizeChannel> constants(n);
  for (std::size_t c = 0; c < n; ++c) {
    constants[c] = {options.scale, options.mean[options.mean.size() == 1 ? 0 : c],
                    options.std[options.std.size() == 1 ? 0 : c]};
  }
  return constants;
}

}  // namespace patchbay::ops
