// The checks of `patchbay doctor`: each reports its finding and what it means.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/client/environment.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

enum class CheckState {
  kOk,
  kLacks,   ///< works without it, slower or with less
  kBroken,  ///< Patchbay does not work here
};

struct Check {
  std::string name;
  CheckState state = CheckState::kOk;
  std::string found;
  std::string means;  ///< consequence for the user; "" when all is well
};

/// Finds that error.
inline Check BrokenCheck(std::string name, const Status& status, std::string means) {
  return {std::move(name), CheckState::kBroken, std::string(MessageOf(status)), std::move(means)};
}

/// Looks at the machine; changes nothing, opens no connection, takes well below a second.
std::vector<Check> CheckMachine(const client::Environment& environment);

/// Whether a TCP connection from here to "10.0.0.7:7800" opens within 5 s; closes it at once.
Check CheckReach(const std::string& address);

/// Free bytes for this user on the file system that holds `path` or its nearest existing parent.
std::uint64_t FreeBytes(const std::string& path);

}  // namespace patchbay::cli
