// The folder in which the nodes of a site find one another: on a file system that all of them see,
// for their user alone. The README has its files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cli/site/site_engine.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// Between two looks at the folder.
inline constexpr long kRendezvousLookMs = 50;

/// Key files, as text, that a node gets from the first one.
struct SiteKeys {
  std::string node;     ///< its agent's
  std::string trainer;  ///< its trainer's
};

/// The folder of this start below `folder`, 0700, made where it is missing. An error for a link and
/// where others may enter it.
StatusOr<std::string> EnterRendezvous(const std::string& folder, const std::string& run);

/// The first node's side. It must Look several times a second as long as the site lives.
class SiteHost {
 public:
  /// Makes the folder of this start below `folder` and takes it, from an earlier start whose first
  /// node is gone too. A usage error that names the first node when there is another one.
  static StatusOr<SiteHost> Open(const std::string& folder, const Engine& engine,
                                 const std::function<bool()>& keep_waiting);
  SiteHost(SiteHost&&) = default;
  SiteHost& operator=(SiteHost&&) = delete;
  /// Removes the folder: nodes that joined see the end of the site.
  ~SiteHost();

  /// Answers the nodes that asked since the last call, each with its own of these keys, and reads
  /// how trainers ended. An error when the folder cannot be used any more.
  Status Look(const std::map<std::string, SiteKeys>& keys);
  /// Names of nodes that have not joined.
  std::vector<std::string> Missing() const;
  /// Exit statuses of other nodes' trainers by rank.
  const std::map<std::int64_t, int>& ended() const { return ended_; }

 private:
  SiteHost(std::string path, Engine engine) : path_(std::move(path)), engine_(std::move(engine)) {}
  Status Claim(const std::function<bool()>& keep_waiting);
  Status AskFirst(const std::function<bool()>& keep_waiting);
  Status Answer(const std::string& hello, const std::map<std::string, SiteKeys>& keys);

  std::string path_;
  Engine engine_;
  std::string claim_;                             ///< name of this node's claim; "" = none
  std::set<std::string> answered_;                ///< names of hellos
  std::map<std::string, std::string> joined_by_;  ///< node -> process
  std::map<std::int64_t, int> ended_;
};

/// Any other node's side.
class SiteGuest {
 public:
  /// Asks the first node for keys until it answers or `keep_waiting` is false (Cancelled). A usage
  /// error with the reason when it refuses.
  static StatusOr<SiteGuest> Join(const std::string& folder, const Engine& engine,
                                  const std::function<bool()>& keep_waiting);

  const SiteKeys& keys() const { return keys_; }
  /// False once the site has ended, or another first node has taken the folder.
  bool SiteLives() const;
  /// Tells the first node how the trainer here ended.
  Status ReportEnd(int status) const;

 private:
  SiteGuest(std::string path, std::int64_t rank, std::string answer, SiteKeys keys)
      : path_(std::move(path)), rank_(rank), answer_(std::move(answer)), keys_(std::move(keys)) {}

  std::string path_;
  std::int64_t rank_;
  std::string answer_;  ///< name of the file with the keys
  SiteKeys keys_;
};

}  // namespace patchbay::cli
