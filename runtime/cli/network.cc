#include "runtime/cli/network.h"

#include <cerrno>

#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/hash.h"
#include "runtime/client/network.h"

namespace patchbay::cli {

Argument PolicyArgument(std::string& policy) {
  Argument argument{"--data-policy", "", "transport between nodes (default tls)", &policy};
  argument.choices = {"tls", "rdma"};
  return argument;
}

Status DeclarePolicy(const client::Environment& environment, const std::string& policy) {
  const std::string path = client::PolicyPath(environment);
  if (policy.empty()) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return FromErrno("forget", path, errno);
    return absl::OkStatus();
  }
  return WriteFileDurably(path, AsBytes(policy), 0600);
}

}  // namespace patchbay::cli
