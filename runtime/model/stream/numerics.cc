#include "runtime/model/stream/numerics.h"

#include "runtime/core/names.h"

namespace patchbay {
namespace {

constexpr auto kNames = NamesInOrder<Numerics>("cpu", "cuda", "strict");

}  // namespace

std::string_view NameOf(Numerics numerics) { return kNames.Of(numerics); }
std::optional<Numerics> NumericsFromName(std::string_view name) { return kNames.Find(name); }

}  // namespace patchbay
