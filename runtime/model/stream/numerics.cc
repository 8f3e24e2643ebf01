#include "runtime/model/stream/numerics.h"

#include "runtime/core/names.h"

namespace patchbay {
namespace {

constexpr auto kNumericsNames = NamesInOrder<Numerics>("cpu", "cuda", "strict");

}  // namespace

std::string_view NameOf(Numerics numerics) { return kNumericsNames.Of(numerics); }
std::optional<Numerics> NumericsFromName(std::string_view name) {
  return kNumericsNames.Find(name);
}

}  // namespace patchbay
