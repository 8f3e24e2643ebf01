#include "workers/jobs/plan/image_pins.h"

#include <utility>

#include "runtime/core/strings.h"
#include "workers/access/planned_images.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kDigitsShown = 12;

Status Refuse(std::string_view cause) {
  return absl::FailedPreconditionError(
      StrCat(cause, "; `patchbay lock --update` takes it as it is now"));
}

}  // namespace

StatusOr<std::optional<ImagePins>> PinsOf(const Json& manifest, std::size_t count) {
  const Json table = manifest.is_object() ? manifest.value("table", Json()) : Json();
  if (!table.is_object() || !table.contains("pins")) return std::optional<ImagePins>();
  const auto wrong = [] {
    return absl::InvalidArgumentError("stream manifest: pins: not one an image");
  };
  ImagePins pins;
  PB_ASSIGN_OR_RETURN(pins.images, ManifestPaths(table["pins"], "images"));
  const Json sets = table["pins"].value("sets", Json());
  if (!sets.is_object() || pins.images.size() != count) return wrong();
  for (const auto& [name, digests] : sets.items()) {
    PB_ASSIGN_OR_RETURN(pins.sets[name], ManifestPaths(sets, name.c_str()));
    if (pins.sets[name].size() != count) return wrong();
  }
  return std::optional<ImagePins>(std::move(pins));
}

Status CheckPinned(const ImagePins& pins, std::size_t image, const Digest& digest) {
  const std::string hex = digest.Hex();
  if (pins.images[image] == hex) return absl::OkStatus();
  return Refuse(StrCat("its digest is ", hex.substr(0, kDigitsShown), "..., the run's lock has ",
                       pins.images[image].substr(0, kDigitsShown),
                       "...: it was changed, replaced or made again"));
}

StatusOr<Digest> PinnedSet(const ImagePins& pins, std::size_t image, const std::string& set) {
  const auto found = pins.sets.find(set);
  if (found != pins.sets.end() && !found->second[image].empty()) {
    return Digest::FromHex(found->second[image]);
  }
  return Refuse(StrCat("the run's lock has no revision of its label set '", set, "'"));
}

}  // namespace patchbay::workers
