// The resources of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::workers {

/// Physical memory, or the cgroup's limit where it is lower.
std::uint64_t UsableMemoryBytes();

struct ChosenGpus {
  std::vector<protocol::Gpu> gpus;
  std::vector<std::string> notes;  ///< for the log: what is left out or cannot do everything, why
};

/// `choice` is "auto" (all that can be used), "none", or UUIDs and indices separated by commas:
/// NotFound for one that is not there, saying why when no GPU can be used at all;
/// FailedPrecondition for one that no process may use.
StatusOr<ChosenGpus> ChooseGpus(const std::string& choice);

/// The local IP address from which `control_address` ("tcp://10.0.0.7:7678") is reached;
/// FailedPrecondition for an address that is not TCP or not reachable.
StatusOr<std::string> LocalAddressTowards(const std::string& control_address);

}  // namespace patchbay::workers
