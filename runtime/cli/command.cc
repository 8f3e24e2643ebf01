#include "runtime/cli/command.h"

#include "absl/strings/cord.h"
#include "runtime/client/run_file.h"

namespace patchbay::cli {
namespace {

constexpr char kUsagePayload[] = "patchbay.cli/usage";

}  // namespace

Status AsUsageError(const Status& status) {
  Status marked = status;
  if (!marked.ok()) marked.SetPayload(kUsagePayload, absl::Cord("1"));
  return marked;
}

Status UsageError(std::string_view text) { return AsUsageError(InvalidArgument(text)); }

bool IsUsageError(const Status& status) {
  return status.GetPayload(kUsagePayload).has_value() || client::IsConfigFault(status);
}

}  // namespace patchbay::cli
