#include "runtime/cli/cluster/network.h"

#include <cerrno>

#include <unistd.h>

#include "runtime/client/network.h"
#include "runtime/core/hash.h"
#include "runtime/os/file.h"

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
  return WriteFileDurably(Folders::OfThisUser(), path, AsBytes(policy), 0600);
}

}  // namespace patchbay::cli
