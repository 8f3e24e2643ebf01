#include "runtime/model/ops/image_icc_lookup.h"

#include "runtime/core/names.h"

namespace patchbay::plan {
namespace {

constexpr auto kIccFallbacks = NamesInOrder<IccFallback>("none", "no_profile", "unusable_profile");

}  // namespace

std::string_view NameOf(IccFallback fallback) { return kIccFallbacks.Of(fallback); }
std::optional<IccFallback> IccFallbackFromName(std::string_view name) {
  return kIccFallbacks.Find(name);
}

Json ToJson(const ImageIcc& icc) {
  if (icc.fallback != IccFallback::kNone) return NameOf(icc.fallback);
  return icc.lookup.Hex();
}

StatusOr<ImageIcc> ImageIccFromJson(const Json& value) {
  if (!value.is_string()) return InvalidArgument("image icc: not text");
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
