#include "ops/normalize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/pixels.h"
#include "runtime/base/strings.h"

namespace patchbay::ops {
namespace {

Status CheckValues(const std::vector<double>& mean, const std::vector<double>& std, double scale) {
  const auto finite = [](double v) { return std::isfinite(v); };
  const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
  if (!positive(scale)) return absl::InvalidArgumentError("scale must be above 0");
  if (!std::all_of(mean.begin(), mean.end(), finite)) {
    return absl::InvalidArgumentError("mean must be finite");
  }
  if (!std::all_of(std.begin(), std.end(), positive)) {
    return absl::InvalidArgumentError("std must be above 0 in every channel");
  }
  return absl::OkStatus();
}

Status CheckTable(const Json& options) {
  const auto given = NormalizeOptions::FromJson(options);
  return CheckValues(given.mean, given.std, given.scale);
}

StatusOr<PixelPair> Checked(const ConstTensorView& in, const TensorView& out) {
  PB_ASSIGN_OR_RETURN(PixelPair pair, CheckPair("normalize", in, out));
  if (in.dtype != DType::kUint8 && in.dtype != DType::kFloat32) {
    return absl::InvalidArgumentError(
        StrCat("normalize: ", NameOf(in.dtype), " in, expected uint8 or float32"));
  }
  if (out.dtype != DType::kFloat32) {
    return absl::InvalidArgumentError(
        StrCat("normalize: ", NameOf(out.dtype), " out, expected float32"));
  }
  if (in.shape[0] != out.shape[0] || in.shape[1] != out.shape[1]) {
    return absl::InvalidArgumentError("normalize: the shapes differ");
  }
  return pair;
}

double ValueAt(const Strided& in, std::int64_t y, std::int64_t x, std::int64_t c) {
  const std::byte* at = in.At(y, x, c);
  if (in.element_bytes == 1) return static_cast<double>(std::to_integer<int>(*at));
  float value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

config::Key NormalizeOptions::Keys() {
  const NormalizeOptions defaults;
  return {.name = "normalize",
          .type = config::KeyType::kMap,
          .help = "(x / scale - mean) / std",
          .members = {{.name = "scale",
                       .type = config::KeyType::kFloat,
                       .fallback = defaults.scale,
                       .help = "the input is divided by this first; above 0"},
                      {.name = "mean",
                       .type = config::KeyType::kFloatList,
                       .fallback = defaults.mean,
                       .min_items = 1,
                       .max_items = kMaxNormalizeChannels,
                       .help = "after scaling; one for all channels, or one for each"},
                      {.name = "std",
                       .type = config::KeyType::kFloatList,
                       .fallback = defaults.std,
                       .min_items = 1,
                       .max_items = kMaxNormalizeChannels,
                       .help = "after scaling; one for all channels, or one for each; above 0"}},
          .check = CheckTable};
}

NormalizeOptions NormalizeOptions::FromJson(const Json& options) {
  return {options["scale"].get<double>(), options["mean"].get<std::vector<double>>(),
          options["std"].get<std::vector<double>>()};
}

StatusOr<std::vector<NormalizeChannel>> NormalizeChannels(const NormalizeOptions& options,
                                                          int channels) {
  const auto n = static_cast<std::size_t>(channels);
  const auto fits = [n](const std::vector<double>& list) {
    return list.size() == 1 || list.size() == n;
  };
  if (!fits(options.mean) || !fits(options.std)) {
    return absl::InvalidArgumentError(StrCat(options.mean.size(), " means and ", options.std.size(),
                                             " stds for ", channels, " channels: expected 1 or ",
                                             channels, " of each"));
  }
  PB_RETURN_IF_ERROR(CheckValues(options.mean, options.std, options.scale));
  std::vector<NormalizeChannel> constants(n);
  for (std::size_t c = 0; c < n; ++c) {
    constants[c] = {options.scale, options.mean[options.mean.size() == 1 ? 0 : c],
                    options.std[options.std.size() == 1 ? 0 : c]};
  }
  return constants;
}

Status Normalize(const NormalizeOptions& options, const ConstTensorView& in,
                 const TensorView& out) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(in, out));
  const auto constants = NormalizeChannels(options, static_cast<int>(pair.in.channels));
  if (!constants.ok()) return Annotate(constants.status(), "normalize");
  for (std::int64_t y = 0; y < pair.out.height; ++y) {
    for (std::int64_t x = 0; x < pair.out.width; ++x) {
      for (std::int64_t c = 0; c < pair.out.channels; ++c) {
        const NormalizeChannel& k = (*constants)[static_cast<std::size_t>(c)];
        const auto value =
            static_cast<float>(NormalizeValue(ValueAt(pair.in, y, x, c), k.scale, k.mean, k.std));
        std::memcpy(pair.out.At(y, x, c), &value, sizeof value);
      }
    }
  }
  return absl::OkStatus();
}

Status LaunchNormalize(const NormalizeOptions& options, const ConstTensorView& d_in,
                       const TensorView& d_out, memory::GpuStream stream) {
  PB_ASSIGN_OR_RETURN(const PixelPair pair, Checked(d_in, d_out));
  if (pair.in.channels > kMaxNormalizeChannels) {
    return absl::InvalidArgumentError(
        StrCat("normalize: more than ", kMaxNormalizeChannels, " channels"));
  }
  const auto channels = NormalizeChannels(options, static_cast<int>(pair.in.channels));
  if (!channels.ok()) return Annotate(channels.status(), "normalize");
  NormalizeConstants constants;
  std::copy(channels->begin(), channels->end(), constants.channel);
  return LaunchOutcome("normalize", LaunchNormalizeKernel(constants, pair.in, pair.out, stream));
}

}  // namespace patchbay::ops
