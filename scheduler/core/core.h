// The scheduler as a pure state machine: (state, event, now) -> actions. It has no clock, socket,
// thread, file or random number: scheduler/server feeds it in the real process and tests/sim in the
// simulator, and equal events give equal actions, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/wire/protocol/envelope.h"
#include "scheduler/policy/core_options.h"
#include "scheduler/policy/roles.h"
#include "scheduler/state/core_gauges.h"

namespace patchbay::scheduler {

/// One authenticated connection. The server gives every connection a number and never reuses it
/// while it runs (after a restart numbers may start again).
using PeerId = std::uint64_t;

/// The identity of a connection by its key alone; nothing the peer claims by itself.
struct PeerIdentity {
  Role role = Role::kSubmitter;
  std::string key_name;  ///< also the only node name a worker key may use
  std::vector<std::string> read_prefixes, write_prefixes;
  std::string team = {};  ///< its jobs use the shares of it; empty = the default team
};

/// The time of an event: `steady_ms` is for order and timeouts and never decreases between events;
/// `wall_seconds` is only displayed and journalled.
struct Instant {
  TimeMs steady_ms = 0;
  std::int64_t wall_seconds = 0;
};

/// Bytes for the journal. Sequences rise by one from record to record over the journal's life.
struct JournalRecord {
  std::uint64_t sequence = 0;
  std::string bytes;
};

/// A message to one peer.
struct SendAction {
  PeerId peer = 0;
  std::uint64_t request_id = 0;  ///< id of the request it answers; 0 = unasked
  protocol::Body body;
};

/// A request that only the process around the core can carry out. It answers the peer itself
/// (KeysReloaded, ShuttingDown, BrowserAdmitted) when it has done it; the core has already checked
/// the role.
struct HostRequest {
  enum class Kind : std::uint8_t { kReloadKeys, kShutDown, kAdmitBrowser };
  Kind kind = Kind::kReloadKeys;
  PeerId peer = 0;
  std::uint64_t request_id = 0;
  std::string code = {};       ///< the browser's
  PeerIdentity identity = {};  ///< and its user's
};

/// The consequences of an event. Carry them out in this order: records to the journal, then sends,
/// then disconnects, then host requests. Sends never wait for the records of the same event:
/// messages that promise durability are sent by JournalDurable.
struct Actions {
  std::vector<JournalRecord> records;
  std::vector<SendAction> sends;
  std::vector<PeerId> disconnects;
  std::vector<HostRequest> host_requests;

  void Clear();
};

struct ClusterMeasures;

/// Not thread-safe: one thread owns it. Every method that takes `Actions&` appends to it.
///
/// Life: construct; LoadSnapshot (if the journal has one); Replay every later record in order;
/// SkipLost; Start once; then events. No other method may be called before Start.
class Core {
 public:
  explicit Core(const CoreOptions& options = {});
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Durable state as EncodeSnapshot wrote it after record `sequence`. DataLoss when it is damaged,
  /// FailedPrecondition when it is of a later version.
  Status LoadSnapshot(std::uint64_t sequence, std::string_view snapshot);
  /// One journalled record; sequences must follow one another. DataLoss when it is damaged or does
  /// not follow from the records before.
  Status Replay(std::uint64_t sequence, std::string_view record);
  /// `records` records after the replayed ones are known to be lost: numbers of jobs and
  /// incarnations that they may have used are not given again. This makes no record: write the
  /// snapshot.
  void SkipLost(std::uint64_t records);
  /// Opens for business under the next incarnation (a record: nothing is leased before it is
  /// durable).
  void Start(Instant now, Actions& out);

  /// From now on nothing is leased: this scheduler is stopping, and takes reports alone.
  void StopGranting();

  /// A connection authenticated. Must come before its first message.
  void PeerJoined(PeerId peer, PeerIdentity identity);
  /// The connection is gone for good (revoked key, socket closed). Leases outlive it.
  void PeerGone(PeerId peer, Instant now, Actions& out);
  /// The keys were revoked: streams submitted with them end, since no trainer may attach any more.
  void KeysRevoked(const std::vector<std::string>& names, Instant now, Actions& out);
  /// Peers that the listener turned away so far; operators see them with the cluster.
  void PeersDropped(std::vector<protocol::PeersDropped::Item>&& items);
  /// Free space where the journal is, likewise.
  void StateFree(std::uint64_t bytes);
  /// A message of a joined peer. Answers to requests (request_id != 0) carry the same request_id.
  void Receive(PeerId peer, protocol::Envelope&& message, Instant now, Actions& out);
  /// Call every 50 to 200 ms.
  void Tick(Instant now, Actions& out);
  /// Journals charges that the last Tick did not. Call before the end.
  void WriteUsage(Instant now, Actions& out);
  /// Every record up to `sequence` has reached the disk.
  void JournalDurable(std::uint64_t sequence, Instant now, Actions& out);

  /// The durable state as of last_sequence(), for compaction. Write it after those records.
  std::string EncodeSnapshot() const;
  /// SHA-256 of the durable state: equal after replay of the same records.
  Digest DurableStateHash() const;
  std::uint64_t last_sequence() const;
  std::uint32_t incarnation() const;
  CoreGauges gauges() const;
  /// The cluster as the identity may see it: every open stream, and the newest `jobs_max` jobs.
  protocol::ClusterDescribed Describe(const PeerIdentity& identity, std::size_t jobs_max);
  /// The shares of teams as the identity may see them.
  protocol::TeamsDescribed DescribeTeams(const PeerIdentity& identity);
  /// Figures for operators (state/measures.h), as of the last event. It takes time in proportion to
  /// jobs and workers: call it at most once a second.
  ClusterMeasures Measure();

  /// Checks the tables against each other (leases, resources, slots); Internal names the fault.
  /// Slow: for tests and the simulator.
  Status CheckInvariants() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace patchbay::scheduler
