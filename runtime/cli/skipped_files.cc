#include "runtime/cli/skipped_files.h"

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"

namespace patchbay::cli {

void PrintSkipped(Terminal& terminal, const FilesByKind& skipped_files) {
  const std::string text = TextOf(skipped_files);
  if (!text.empty()) terminal.Say(StrCat("skipped: ", text));
}

FilesByKind SkippedOf(const Json& result) {
  if (!result.is_object() || !result.contains("skipped_files")) return {};
  return FromJson<FilesByKind>(result["skipped_files"], "skipped files").value_or(FilesByKind());
}

}  // namespace patchbay::cli
