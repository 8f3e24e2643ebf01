#include "ops/icc_to_srgb/icc_lookup.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/base64.h"
#include "runtime/core/fields.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_forms.h"

namespace patchbay::ops {
namespace {

constexpr std::string_view kWhat = "colour lookup";
constexpr std::size_t kValueBytes = 2;

Status Wrong(std::string_view cause) { return InvalidArgument(kWhat, ": ", cause); }

/// A lookup as a store carries it.
struct StoredLookup {
  int grid = kIccGrid, steps = kIccSteps;
  Digest sha256;
  std::string values;

  static constexpr auto Fields() {
    using T = StoredLookup;
    return AsFullObject(Field("grid", &T::grid).Within(kIccGrid, kIccGrid),
                        Field("steps", &T::steps).Within(kIccSteps, kIccSteps),
                        Field("sha256", &T::sha256), Field("values", &T::values));
  }
};

}  // namespace

StatusOr<IccLookup> IccLookup::FromBytes(std::string_view bytes) {
  if (bytes.size() != 3 * kIccNodes * kValueBytes) return Wrong("wrong size for the grid");
  IccLookup lookup;
  lookup.bytes_ = std::string(bytes);
  lookup.digest_ = Sha256Of(bytes);
  lookup.nodes_.assign(kIccNodes, {});
  for (std::size_t i = 0; i < 3 * kIccNodes; ++i) {
    const auto low = static_cast<std::uint8_t>(bytes[kValueBytes * i]);
    const auto high = static_cast<std::uint8_t>(bytes[kValueBytes * i + 1]);
    const auto value = static_cast<std::int16_t>(static_cast<std::uint16_t>(low | (high << 8)));
    lookup.nodes_[i / 3].level[i % 3] = static_cast<float>(value) / kIccSteps;
  }
  return lookup;
}

StatusOr<IccLookup> IccLookup::FromLevels(const std::vector<double>& levels) {
  if (levels.size() != 3 * kIccNodes) return Wrong("wrong size for the grid");
  std::string bytes(kValueBytes * levels.size(), '\0');
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (!std::isfinite(levels[i])) return Wrong("a value is not finite");
    const double steps = std::clamp(std::nearbyint(levels[i] * kIccSteps), -32768.0, 32767.0);
    const auto value = static_cast<std::uint16_t>(static_cast<std::int16_t>(steps));
    bytes[kValueBytes * i] = static_cast<char>(value & 0xFF);
    bytes[kValueBytes * i + 1] = static_cast<char>(value >> 8);
  }
  return FromBytes(bytes);
}

StatusOr<IccLookup> IccLookup::FromJson(const Json& value) {
  PB_ASSIGN_OR_RETURN(const auto stored, patchbay::FromJson<StoredLookup>(value, kWhat));
  PB_ASSIGN_OR_RETURN(const std::string bytes, FromBase64(stored.values));
  PB_ASSIGN_OR_RETURN(IccLookup lookup, FromBytes(bytes));
  if (lookup.digest_ != stored.sha256) return DataLoss(kWhat, ": SHA-256 mismatch");
  return lookup;
}

Json IccLookup::ToJson() const {
  return JsonOf(StoredLookup{.sha256 = digest_, .values = Base64Of(bytes_)});
}

}  // namespace patchbay::ops
