#include "runtime/model/ops/image_icc_lookup.h"

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

}  // namespace patchbay::plan
