#include "runtime/model/source/modality.h"

#include <array>

#include "absl/strings/ascii.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/source/channel_names.h"

namespace patchbay {
namespace {

constexpr std::string_view kArbitrary = "arbitrary";

struct NamedModality {
  std::string_view text, name, unit;
};
constexpr std::array<NamedModality, 7> kNamed = {{{"CT", "CT", "HU"},
                                                  {"CT:arbitrary", "CT", kArbitrary},
                                                  {"MR", "MR", kArbitrary},
                                                  {"PT", "PT", kArbitrary},
                                                  {"PT:SUVbw", "PT", "SUVbw"},
                                                  {"PT:Bq/ml", "PT", "Bq/ml"},
                                                  {"OT", "OT", kArbitrary}}};

std::string Lower(std::string_view text) { return absl::AsciiStrToLower(std::string(text)); }

Modality Of(const NamedModality& named) {
  return {std::string(named.name), std::string(named.unit)};
}

/// By its text, in any case.
std::optional<Modality> FindModality(std::string_view text) {
  for (const NamedModality& named : kNamed) {
    if (Lower(named.text) == Lower(text)) return Of(named);
  }
  return std::nullopt;
}

/// The text of a member; "" where there is none.
std::string MemberText(const Json& object, const char* key) {
  const Json value = object.is_object() ? object.value(key, Json()) : Json();
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace

std::string Modality::ToString() const {
  for (const NamedModality& named : kNamed) {
    if (Of(named) == *this) return std::string(named.text);
  }
  return StrCat(name, ":", unit);
}

Status Modality::Check() const {
  if (FindModality(ToString())) return absl::OkStatus();
  return InvalidArgument("modality '", name, "' in '", unit, "' is none of ",
                         StrJoin(ModalityNames(), ", "));
}

std::vector<std::string> ModalityNames() {
  std::vector<std::string> names;
  for (const NamedModality& named : kNamed) names.emplace_back(named.text);
  return names;
}

StatusOr<Modality> ParseModality(std::string_view text) {
  const std::string lower = Lower(text);
  const auto found = FindModality(lower == "mri" ? "MR" : lower == "pet" ? "PT" : text);
  if (found) return *found;
  return InvalidArgument("'", text, "' is none of ", StrJoin(ModalityNames(), ", "),
                         "; OT is any other");
}

std::optional<Modality> RecordedModality(const Json& attributes) {
  if (!attributes.is_object()) return std::nullopt;
  if (const auto recorded = attributes.find("modality"); recorded != attributes.end()) {
    const auto record = FromJson<ModalityRecord>(*recorded, "modality");
    return record.ok() ? std::optional<Modality>(*record) : std::nullopt;
  }
  // Series record their modality; PET its unit too, and CT where it is another than HU.
  const Json series = attributes.value("acquisition", Json());
  const std::string name = MemberText(series, "modality"), unit = MemberText(series, "unit");
  if (name == "MR" || (name == "CT" && unit.empty())) return FindModality(name);
  return name.empty() ? std::nullopt : FindModality(StrCat(name, ":", unit));
}

std::optional<Modality> SideCarModality(const Json& side_car) {
  const std::string name = MemberText(side_car, "Modality");
  if (name.empty()) return std::nullopt;
  const auto found = FindModality(name);
  if (!found || found->name != "PT") return found ? found : FindModality("OT");
  const std::string unit = Lower(MemberText(side_car, "Units"));
  if (unit == "bq/ml" || unit == "bqml") return FindModality("PT:Bq/ml");
  return unit == "suvbw" ? FindModality("PT:SUVbw") : found;
}

std::optional<Modality> DatasetModality(const Json& dataset) {
  for (const char* key : {"channel_names", "modality"}) {
    const Json channels = dataset.is_object() ? dataset.value(key, Json()) : Json();
    if (!channels.is_structured() || channels.size() != 1 || !channels.begin()->is_string()) {
      continue;
    }
    const auto found = ChannelModality(channels.begin()->get_ref<const std::string&>());
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace patchbay
