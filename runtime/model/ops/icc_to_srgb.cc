#include "runtime/model/ops/icc_to_srgb.h"

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

struct FallbackName {
  IccFallback fallback;
  std::string_view name;
};
constexpr FallbackName kFallbackNames[] = {{IccFallback::kNone, "none"},
                                           {IccFallback::kNoProfile, "no_profile"},
                                           {IccFallback::kUnusable, "unusable_profile"}};

}  // namespace

std::string_view NameOf(IccFallback fallback) {
  for (const FallbackName& row : kFallbackNames) {
    if (row.fallback == fallback) return row.name;
  }
  return "";
}

std::optional<IccFallback> IccFallbackFromName(std::string_view name) {
  for (const FallbackName& row : kFallbackNames) {
    if (row.name == name) return row.fallback;
  }
  return std::nullopt;
}

config::Key IccToSrgbOptions::Keys() {
  return {.name = std::string(kIccToSrgb),
          .type = config::KeyType::kMap,
          .help = "the colours of each slide as sRGB, by the ICC profile of its scanner",
          .members = {{.name = "missing",
                       .type = config::KeyType::kChoice,
                       .fallback = "keep",
                       .choices = {"keep", "refuse"},
                       .help = "a slide without a usable profile keeps its colours and is named, "
                               "or is an error"}}};
}

IccToSrgbOptions IccToSrgbOptions::FromJson(const Json& options) {
  return {options["missing"] == "refuse"};
}

Json ToJson(const ImageIcc& icc) {
  if (icc.fallback != IccFallback::kNone) return NameOf(icc.fallback);
  return icc.lookup.Hex();
}

StatusOr<ImageIcc> ImageIccFromJson(const Json& value) {
  if (!value.is_string()) return absl::InvalidArgumentError("image icc: not text");
  const auto& text = value.get_ref<const std::string&>();
  ImageIcc icc;
  const auto fallback = IccFallbackFromName(text);
  if (fallback && *fallback != IccFallback::kNone) {
    icc.fallback = *fallback;
    return icc;
  }
  PB_ASSIGN_OR_RETURN(icc.lookup, Digest::FromHex(text));
  return icc;
}

std::optional<IccToSrgbOptions> FindIccToSrgb(const Json& preprocess, const Json& augment) {
  for (const Json* list : {&preprocess, &augment}) {
    for (const Json& step : *list) {
      if (step.contains(kIccToSrgb)) return IccToSrgbOptions::FromJson(step[kIccToSrgb]);
    }
  }
  return std::nullopt;
}

}  // namespace patchbay::plan
