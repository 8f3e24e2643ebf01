#include "runtime/cli/skipped_files.h"

#include <cstdint>

#include "runtime/core/strings.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {

std::string SkippedText(const Json& skipped_files) {
  FilesByKind files;
  for (const auto& [kind, count] : skipped_files.items()) {
    if (count.is_number_integer()) files[kind] = count.get<std::int64_t>();
  }
  return TextOf(files);
}

void PrintSkipped(Terminal& terminal, const Json& skipped_files) {
  const std::string text = SkippedText(skipped_files);
  if (!text.empty()) terminal.Say(StrCat("skipped: ", text));
}

Json SkippedOf(const Json& result) {
  const auto found = result.is_object() ? result.find("skipped_files") : result.end();
  if (!result.is_object() || found == result.end() || !found->is_object()) return Json::object();
  return *found;
}

}  // namespace patchbay::cli
