#include "workers/jobs/plan/image_pins.h"

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kDigitsShown = 12;

Status Refuse(std::string_view cause) {
  return absl::FailedPreconditionError(
      StrCat(cause, "; `patchbay lock --update` takes it as it is now"));
}

}  // namespace

Status CheckPinned(const plan::RowPins& pins, const Digest& digest) {
  if (pins.image == digest) return absl::OkStatus();
  return Refuse(StrCat("its digest is ", digest.Hex().substr(0, kDigitsShown),
                       "..., the run's lock has ", pins.image.Hex().substr(0, kDigitsShown),
                       "...: it was changed, replaced or made again"));
}

StatusOr<Digest> PinnedSet(const plan::RowPins& pins, const std::string& set) {
  const auto found = pins.sets.find(set);
  if (found != pins.sets.end()) return found->second;
  return Refuse(StrCat("the run's lock has no revision of its label set '", set, "'"));
}

}  // namespace patchbay::workers
