#include "runtime/model/jobs/tissue_options.h"

#include <algorithm>
#include <charconv>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

constexpr std::string_view kWhat = "tissue option";

/// The text as JSON of the option's kind: numbers as numbers.
Json TypedJson(const Option& option, const std::string& text) {
  if (std::holds_alternative<std::string*>(option.target)) return text;
  const StatusOr<Json> json = ParseJson(text, kWhat);
  return json.ok() ? *json : Json(text);
}

Status TakeText(const std::vector<Option>& options, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return InvalidArgument(kWhat, " '", text, "': expected KEY=VALUE");
  }
  std::string key = text.substr(0, equals);
  std::replace(key.begin(), key.end(), '-', '_');
  for (const Option& option : options) {
    if (option.Key() != key) continue;
    return ReadOption(option, TypedJson(option, text.substr(equals + 1)), kWhat);
  }
  std::vector<std::string> keys;
  for (const Option& option : options) keys.push_back(option.name);
  return InvalidArgument(kWhat, " '", text, "': no such key (", StrJoin(keys, ", "), ")");
}

}  // namespace

std::vector<Option> TissueOptions::Options() {
  constexpr char kProfiles[] = "the profile's";
  return {{.name = "channel",
           .help = "tells tissue from background: colour, or brightness",
           .target = &channel,
           .choices = {"saturation", "grey"},
           .otherwise = kProfiles},
          {.name = "threshold",
           .help = "`otsu`, or 0 to 255: more saturated, or not brighter, is tissue",
           .target = &threshold,
           .otherwise = kProfiles},
          {.name = "blur",
           .help = "side of the median, in pixels of the picture of 1/32",
           .target = &blur,
           .numbers = {1, 3, 5, 7, 9, 11, 13, 15},
           .unit = "px",
           .otherwise = kProfiles},
          {.name = "closing",
           .help = "side of the square that closes gaps",
           .target = &closing,
           .min = 0,
           .max = 10'000,
           .unit = "um",
           .otherwise = kProfiles},
          {.name = "min-area",
           .help = "smaller pieces are no tissue",
           .target = &min_area,
           .min = 0,
           .max = 1e10,
           .unit = "um2",
           .otherwise = kProfiles},
          {.name = "max-hole",
           .help = "holes up to that are tissue",
           .target = &max_hole,
           .min = 0,
           .max = 1e10,
           .unit = "um2",
           .otherwise = kProfiles},
          {.name = "pen",
           .help = "`yes`: areas of pen and marker are left out",
           .target = &pen,
           .choices = {"yes", "no"},
           .otherwise = "yes"},
          {.name = "black",
           .help = "pixels whose brightest channel is below are left out",
           .target = &black,
           .min = 0,
           .max = 255,
           .otherwise = "10"}};
}

StatusOr<TissueOptions> ParseTissueOptions(const std::vector<std::string>& texts) {
  TissueOptions options;
  const std::vector<Option> table = options.Options();
  for (const std::string& text : texts) PB_RETURN_IF_ERROR(TakeText(table, text));
  if (!options.threshold.empty() && !ThresholdOf(options.threshold)) {
    return InvalidArgument(kWhat, ": threshold: expected otsu, or 0 to 255, not '",
                           options.threshold, "'");
  }
  return options;
}

std::vector<std::string> SplitTissueOptions(std::string_view cell) {
  constexpr std::string_view kBetween = " ;\t";
  std::vector<std::string> texts;
  for (std::size_t at = cell.find_first_not_of(kBetween); at != std::string_view::npos;
       at = cell.find_first_not_of(kBetween, at)) {
    const std::size_t end = std::min(cell.find_first_of(kBetween, at), cell.size());
    texts.emplace_back(cell.substr(at, end - at));
    at = end;
  }
  return texts;
}

std::optional<int> ThresholdOf(std::string_view text) {
  if (text == "otsu") return -1;
  int value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_whole && value >= 0 && value <= 255 ? std::optional(value) : std::nullopt;
}

}  // namespace patchbay
