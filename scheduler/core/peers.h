// The peers: all connections, and the worker, agent or trainer of each. Private to scheduler/core.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include "scheduler/core/journal_barrier.h"
#include "scheduler/core/worker_table.h"

namespace patchbay::scheduler {

/// A connection with the worker, agent, trainer or user behind it.
struct Peer {
  PeerIdentity identity;
  WorkerId worker = kNoWorker;
  std::string agent_of;  ///< node name
  RankId trainer;        ///< stream 0 = none
};

/// Invariants: a connection is bound to places, nodes and ranks that its own messages named; it
/// speaks for one only as long as that one's table names it as its connection; a worker or node
/// never names a connection that is gone.
class Peers {
 public:
  Peers(const EventContext& event, JournalBarrier& barrier, WorkerTable& worker_table)
      : event_(event), barrier_(barrier), worker_table_(worker_table) {}

  /// Ignored past kMaxPeers: the peer's messages are answered by a disconnect.
  void Join(PeerId peer, PeerIdentity&& identity);
  /// Null when it never joined.
  const Peer* Find(PeerId peer) const;
  /// A connection belongs to one worker: an earlier worker of the connection loses it.
  void BindWorker(PeerId peer, WorkerId worker);
  void BindAgent(PeerId peer, const std::string& node) { peers_.at(peer).agent_of = node; }
  void BindTrainer(PeerId peer, const RankId& rank) { peers_.at(peer).trainer = rank; }

  /// The live worker that sent the request. Null when the peer is no live worker; the request is
  /// then refused.
  Worker* WorkerOf(const Request& request);
  /// The node of which the peer is the present agent, or null.
  Node* NodeOf(PeerId peer);
  RankId RankOf(PeerId peer) const { return peers_.at(peer).trainer; }
  /// Notes a heartbeat of a worker, or of an agent for itself and for its workers that have a
  /// connection and are not named as silent. False when the peer is neither, or is it no longer.
  bool Heard(PeerId peer, const protocol::Heartbeat& heartbeat);
  /// The connection is gone: its worker or node no longer has one. The streams handle its trainer.
  void Leave(PeerId peer);

  Status Check() const;

 private:
  void Heard(Worker& worker) const;

  const EventContext& event_;
  JournalBarrier& barrier_;
  WorkerTable& worker_table_;
  std::unordered_map<PeerId, Peer> peers_;
};

}  // namespace patchbay::scheduler
