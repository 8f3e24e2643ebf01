#include "runtime/cli/skipped_files.h"

#include <cstdint>

#include "runtime/core/strings.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {

std::string SkippedText(const Json& passed_over) {
  FilesByKind files;
  for (const auto& [kind, count] : passed_over.items()) {
    if (count.is_number_integer()) files[kind] = count.get<std::int64_t>();
  }
  return TextOf(files);
}

void PrintSkipped(Terminal& terminal, const Json& passed_over) {
  const std::string text = SkippedText(passed_over);
  if (!text.empty()) terminal.Say(StrCat("passed over: ", text));
}

Json SkippedOf(const Json& result) {
  const auto found = result.is_object() ? result.find("passed_over") : result.end();
  if (!result.is_object() || found == result.end() || !found->is_object()) return Json::object();
  return *found;
}

}  // namespace patchbay::cli
