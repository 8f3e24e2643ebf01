// From a run config to a running stream: config, cluster, submitted or joined job, attached rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/client/cluster.h"
#include "runtime/client/image_record.h"
#include "runtime/client/run_file.h"
#include "runtime/client/stream.h"
#include "runtime/client/stream_paths.h"
#include "runtime/core/status.h"

namespace patchbay::client {

struct RunOptions {
  RunSource source;
  ClusterOptions cluster;
  std::shared_ptr<Cluster> open_cluster;  ///< instead of opening one

  std::string split;            ///< a value of the config's split_column, or plan::kAllSplits
  std::optional<bool> augment;  ///< instead of the split's role
  std::uint32_t rank = 0, world_size = 1;
  /// Ranks with the same name are one run: the first submits it, the others join it while it runs.
  /// "" with one rank: a run of its own; with several ranks: the name that their launch shares
  /// (Environment::rendezvous).
  std::string name;
  /// The run is one of `patchbay map`: this process is one of any number of consumers, which have
  /// no ranks. Consumers with the same name are one run.
  bool map = false;
  JobId job = 0;             ///< a stream job that was submitted before, instead of a name
  std::string resume_token;  ///< Stream::ResumeToken of the same plan, of any world size
  std::uint32_t epoch = 0;   ///< where to start without a token
  std::string data_policy;   ///< "" = this machine's declared policy
  std::string data_listen;   ///< address for workers of other nodes; "" = the control connection's
  /// Called with the job about five times a second while its images are planned; may be empty.
  std::function<void(const protocol::JobRow&)> watch;
  SlotMemory memory = SlotMemory::kHost;
  int device = 0;                    ///< CUDA ordinal, for device slots
  bool leave_when_stopping = false;  ///< see StreamOptions
  /// Longest wait for a place, while its team has as many streams as it may; 0: refused then.
  std::int64_t wait_s = 3'600;
  std::int32_t priority = 0;  ///< see SubmitJob
};

/// A running stream, with its job, plan and cluster.
struct Run {
  RunFile file;
  std::shared_ptr<Cluster> cluster;
  JobId job = 0;
  bool submitted = false;            ///< by this rank alone: no other rank may stream it
  std::vector<std::string> images;   ///< paths in the plan's order
  std::string plan;                  ///< its text
  std::vector<ImageRecord> records;  ///< records of the same images, from the user's table
  results::SkippedImages skipped;    ///< images that the plan leaves out
  /// The first unit of each image of a map, and the one behind the last's; empty for others.
  std::vector<std::uint64_t> first_units;
  std::unique_ptr<Stream> stream;  ///< ends before the cluster

  /// Rewrites `status` for the user: says that the cluster has ended, adds the paths of images and
  /// the line of a key.
  Status Explain(const Status& status) const;
  /// Cancels the job, if this run alone submitted it. For errors only: a run that ends well
  /// detaches.
  void Abandon();
};

/// Opens the run. Every wait ends with Cancelled once ClusterOptions::keep_waiting returns false.
/// An embedded cluster lives until Run::cluster's last owner is gone.
StatusOr<std::unique_ptr<Run>> OpenRun(const RunOptions& options);

}  // namespace patchbay::client
