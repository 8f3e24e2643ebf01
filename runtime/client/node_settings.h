// The processes of a node: a supervisor with an agent, and on a cluster's first node the scheduler.
// See workers/agent/README.md. `patchbay up`, `join` and embedded clusters start them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/wire/data/network_policy.h"

namespace patchbay::client {

inline constexpr std::int64_t kMaxCpuWorkers = 4096;  ///< limit of a node

/// The scheduler of a cluster's first node.
struct SchedulerSettings {
  std::string home;                ///< folder with server key and key table
  std::string state;               ///< folder of the journal
  std::string listen;              ///< control address
  bool allow_public = false;       ///< the user named it: it may be public or a wildcard
  std::string metrics = {};        ///< [ADDR:]PORT of its page of metrics; "" = none
  std::string dashboard = {};      ///< and of its dashboard
  std::string tls = {};            ///< file of the certificate of both; "" = none
  std::string metrics_token = {};  ///< file of the token of the metrics; "" = none
};

struct NodeSettings {
  std::optional<SchedulerSettings> scheduler;  ///< absent: a further node
  std::string node_key;                        ///< path of the agent's key file
  std::string state;                           ///< folder of the agent
  std::int64_t cpus = 1;                       ///< CPU workers
  std::string gpus = "auto";                   ///< auto | none | UUID,...
  std::uint64_t memory_bytes = 0;              ///< memory of all workers together; 0 = no limit
  std::string files;                           ///< FileSharing as text; "" = as each file is made
  bool may_take_burned_in = false;             ///< Site::may_take_burned_in
  /// Own functions of users that workers run: FunctionsOf a user or a site; "" = none.
  std::string functions;
  data::Network network;  ///< over which batches may leave this node
  /// Time for an orderly stop of all processes; workers get nine tenths of it for their work.
  long stop_ms = 20'000;
  /// Folder of the programs; "" = that of the running program.
  std::string programs;
};

/// NodeSettings::functions of workers of the user who runs this process: `python` runs any file of
/// theirs.
std::string FunctionsOfUser(const std::string& python);

/// The path of one of our programs; NotFound when it is not there.
StatusOr<std::string> ProgramPath(const std::string& programs, std::string_view name);

/// The supervisor's command line, program first.
StatusOr<std::vector<std::string>> SupervisorCommand(const NodeSettings& settings);

/// The lines of a supervisor to the process that started it (SupervisorOptions::ready_fd), as they
/// arrive.
class ReadyLines {
 public:
  void Append(std::string_view piece) { text_ += piece; }
  /// The rest of the first whole line that begins with `start`, or nothing.
  std::optional<std::string> Line(std::string_view start) const;
  bool TooLong() const { return text_.size() > kMaxBytes; }

 private:
  static constexpr std::size_t kMaxBytes = 64 << 10;
  std::string text_;
};

}  // namespace patchbay::client
