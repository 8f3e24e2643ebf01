// The engine that started this process on each of its nodes: Slurm, or a user by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::cli {

/// The place of this process among the nodes of a site.
struct Engine {
  std::string run;                 ///< names this start alone: "slurm-12.0-restart1"
  std::int64_t rank = 0;           ///< 0 = the first node
  std::string name;                ///< this node, one of `nodes`
  std::vector<std::string> nodes;  ///< names of all nodes
  std::optional<std::int64_t> cpus;
  std::string memory;  ///< in the form of --memory; "" = no limit
  std::string gpus;    ///< in the form of --gpus; "" = no word of them
  std::string faces;   ///< an address in the network that the nodes share; "" = unknown
  /// A stop is sent to every process of the node, the trainer's too.
  bool signals_all = false;
};

/// The value of a variable of a process, "" where it is not set.
std::string VariableIn(char** variables, std::string_view name);

/// The names in a list of hosts as Slurm writes it: "n[01-03,7],login". InvalidArgument for another
/// form, and beyond kMaxSiteNodes names.
StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view list);
inline constexpr std::size_t kMaxSiteNodes = 1024;

/// From the variables of a step of Slurm (`srun`); nothing where there is none. A usage error
/// unless the step has one task a node.
StatusOr<std::optional<Engine>> SlurmEngine(char** variables);

/// Node `rank` of `of` that a user starts by hand.
Engine EngineByHand(std::int64_t rank, std::int64_t of);

}  // namespace patchbay::cli
