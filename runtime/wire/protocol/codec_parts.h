// What the parts of the codec share: one Write and one Read per message, over the generated types.
// Only for the codec_*.cc files of this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <capnp/message.h>

#include "patchbay.capnp.h"
#include "runtime/wire/protocol/codec.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::protocol::codec {

/// Remembers the first thing that could not be encoded.
struct Writing {
  const char* failure = nullptr;

  void Fail(const char* why) {
    if (failure == nullptr) failure = why;
  }
};

/// Remembers the first thing that was wrong, and how much memory the message may still cause: a
/// small message must not become a large object.
class Reading {
 public:
  explicit Reading(std::size_t message_bytes) : budget_bytes_(4 * message_bytes + (64u << 10)) {}

  void Fail(const char* why) {
    if (failure_ == nullptr) failure_ = why;
  }
  /// False, and failed, when the budget is used up.
  bool Charge(std::size_t bytes) {
    if (failure_ != nullptr) return false;
    if (bytes > budget_bytes_) {
      Fail("the message would take more memory than its size allows");
      return false;
    }
    budget_bytes_ -= bytes;
    return true;
  }
  const char* failure() const { return failure_; }

 private:
  std::size_t budget_bytes_;
  const char* failure_ = nullptr;
};

// One line a message: X(type, union member, its generated constant, reader and setter suffix).
#define PATCHBAY_EVERY_BODY(X)           \
  X(Heartbeat, HEARTBEAT)                \
  X(HeartbeatSeen, HEARTBEAT_SEEN)       \
  X(RequestFailed, REQUEST_FAILED)       \
  X(RegisterAgent, REGISTER_AGENT)       \
  X(AgentRegistered, AGENT_REGISTERED)   \
  X(RegisterWorker, REGISTER_WORKER)     \
  X(WorkerRegistered, WORKER_REGISTERED) \
  X(LeasesGranted, LEASES_GRANTED)       \
  X(LeasesRevoked, LEASES_REVOKED)       \
  X(FetchStream, FETCH_STREAM)           \
  X(StreamDescribed, STREAM_DESCRIBED)   \
  X(RenewLeases, RENEW_LEASES)           \
  X(LeasesRenewed, LEASES_RENEWED)       \
  X(TasksFinished, TASKS_FINISHED)       \
  X(TasksCommitted, TASKS_COMMITTED)     \
  X(ShardsReturned, SHARDS_RETURNED)     \
  X(WorkerExited, WORKER_EXITED)         \
  X(WorkerExitSeen, WORKER_EXIT_SEEN)    \
  X(KillWorker, KILL_WORKER)             \
  X(Drain, DRAIN)                        \
  X(Drained, DRAINED)                    \
  X(AttachTrainer, ATTACH_TRAINER)       \
  X(TrainerAttached, TRAINER_ATTACHED)   \
  X(AnnounceSlots, ANNOUNCE_SLOTS)       \
  X(ShardsCounted, SHARDS_COUNTED)       \
  X(FenceShard, FENCE_SHARD)             \
  X(ShardFenced, SHARD_FENCED)           \
  X(StreamFailed, STREAM_FAILED)         \
  X(DetachTrainer, DETACH_TRAINER)       \
  X(TrainerDetached, TRAINER_DETACHED)   \
  X(SubmitJob, SUBMIT_JOB)               \
  X(JobSubmitted, JOB_SUBMITTED)         \
  X(DescribeJobs, DESCRIBE_JOBS)         \
  X(JobsDescribed, JOBS_DESCRIBED)       \
  X(FetchResult, FETCH_RESULT)           \
  X(ResultFetched, RESULT_FETCHED)       \
  X(CancelJob, CANCEL_JOB)               \
  X(JobCancelled, JOB_CANCELLED)         \
  X(RetryJob, RETRY_JOB)                 \
  X(JobRetried, JOB_RETRIED)             \
  X(FetchLogs, FETCH_LOGS)               \
  X(LogsFetched, LOGS_FETCHED)           \
  X(DescribeCluster, DESCRIBE_CLUSTER)   \
  X(ClusterDescribed, CLUSTER_DESCRIBED) \
  X(ReloadKeys, RELOAD_KEYS)             \
  X(KeysReloaded, KEYS_RELOADED)         \
  X(ShutDown, SHUT_DOWN)                 \
  X(ShuttingDown, SHUTTING_DOWN)         \
  X(PutResultPart, PUT_RESULT_PART)      \
  X(ResultPartKept, RESULT_PART_KEPT)    \
  X(PeersDropped, PEERS_DROPPED)

#define PATCHBAY_DECLARE_BODY(Type, CONSTANT)                     \
  void Write(Writing& out, const Type& m, wire::Type::Builder b); \
  void Read(Reading& in, wire::Type::Reader r, Type& m);
PATCHBAY_EVERY_BODY(PATCHBAY_DECLARE_BODY)
#undef PATCHBAY_DECLARE_BODY

#define PATCHBAY_DECLARE_PART(Type, Wire)                   \
  void Write(Writing& out, const Type& m, Wire::Builder b); \
  void Read(Reading& in, Wire::Reader r, Type& m);
PATCHBAY_DECLARE_PART(LeaseNumber, wire::LeaseNumber)
PATCHBAY_DECLARE_PART(TaskId, wire::TaskId)
PATCHBAY_DECLARE_PART(ShardId, wire::ShardId)
PATCHBAY_DECLARE_PART(Grant, wire::Grant)
PATCHBAY_DECLARE_PART(StreamGeometry, wire::StreamGeometry)
PATCHBAY_DECLARE_PART(Resources, wire::Resources)
PATCHBAY_DECLARE_PART(Outcome, wire::Outcome)
PATCHBAY_DECLARE_PART(TaskSpec, wire::TaskSpec)
PATCHBAY_DECLARE_PART(Gpu, wire::Gpu)
PATCHBAY_DECLARE_PART(HeldLease, wire::HeldLease)
PATCHBAY_DECLARE_PART(TaskLease, wire::TaskLease)
PATCHBAY_DECLARE_PART(ShardLease, wire::ShardLease)
PATCHBAY_DECLARE_PART(TrainerEndpoint, wire::TrainerEndpoint)
PATCHBAY_DECLARE_PART(RenewLeases::Item, wire::RenewLeases::Item)
PATCHBAY_DECLARE_PART(TasksFinished::Item, wire::TasksFinished::Item)
PATCHBAY_DECLARE_PART(ShardsReturned::Item, wire::ShardsReturned::Item)
PATCHBAY_DECLARE_PART(SlotRow, wire::SlotRow)
PATCHBAY_DECLARE_PART(ShardsCounted::Item, wire::ShardsCounted::Item)
PATCHBAY_DECLARE_PART(PeersDropped::Item, wire::PeersDropped::Item)
PATCHBAY_DECLARE_PART(FailedTask, wire::FailedTask)
PATCHBAY_DECLARE_PART(JobRow, wire::JobRow)
PATCHBAY_DECLARE_PART(LogsFetched::Line, wire::LogsFetched::Line)
PATCHBAY_DECLARE_PART(NodeRow, wire::NodeRow)
PATCHBAY_DECLARE_PART(WorkerRow, wire::WorkerRow)
#undef PATCHBAY_DECLARE_PART

inline capnp::Text::Reader AsText(const std::string& text) { return {text.c_str(), text.size()}; }
inline capnp::Data::Reader AsData(std::string_view bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}
inline capnp::Data::Reader AsData(const Digest& digest) {
  return {digest.bytes.data(), digest.bytes.size()};
}

void Read(Reading& in, capnp::Text::Reader r, std::string& text);
void Read(Reading& in, capnp::Data::Reader r, std::string& bytes);
/// Exactly 32 bytes, or none for "no digest" (all zero).
void Read(Reading& in, capnp::Data::Reader r, Digest& digest);

/// `init(n)` makes the list of n elements on the wire; false, and failed, when n is too many.
template <typename T>
bool Fits(Writing& out, const std::vector<T>& items) {
  if (items.size() <= kMaxListItems) return true;
  out.Fail("a list is longer than 65536");
  return false;
}

template <typename T, typename Init>
void WriteStructs(Writing& out, const std::vector<T>& items, Init init) {
  if (items.empty() || !Fits(out, items)) return;
  auto list = init(static_cast<unsigned>(items.size()));
  for (unsigned i = 0; i < items.size(); ++i) Write(out, items[i], list[i]);
}

template <typename T, typename Init>
void WriteNumbers(Writing& out, const std::vector<T>& items, Init init) {
  if (items.empty() || !Fits(out, items)) return;
  auto list = init(static_cast<unsigned>(items.size()));
  for (unsigned i = 0; i < items.size(); ++i) list.set(i, items[i]);
}

template <typename Init>
void WriteTexts(Writing& out, const std::vector<std::string>& items, Init init) {
  if (items.empty() || !Fits(out, items)) return;
  auto list = init(static_cast<unsigned>(items.size()));
  for (unsigned i = 0; i < items.size(); ++i) list.set(i, AsText(items[i]));
}

template <typename Init>
void WriteBlobs(Writing& out, const std::vector<std::string>& items, Init init) {
  if (items.empty() || !Fits(out, items)) return;
  auto list = init(static_cast<unsigned>(items.size()));
  for (unsigned i = 0; i < items.size(); ++i) list.set(i, AsData(items[i]));
}

/// False, and failed, when the list is too long or would take too much memory.
template <typename T>
bool Admit(Reading& in, unsigned count) {
  if (count > kMaxListItems) {
    in.Fail("a list is longer than 65536");
    return false;
  }
  return in.Charge(count * sizeof(T));
}

/// Structs, texts and blobs: whatever Read takes.
template <typename List, typename T>
void ReadEach(Reading& in, List list, std::vector<T>& items) {
  if (!Admit<T>(in, list.size())) return;
  items.resize(list.size());
  for (unsigned i = 0; i < list.size() && in.failure() == nullptr; ++i) Read(in, list[i], items[i]);
}

template <typename List, typename T>
void ReadNumbers(Reading& in, List list, std::vector<T>& items) {
  if (!Admit<T>(in, list.size())) return;
  items.resize(list.size());
  for (unsigned i = 0; i < list.size(); ++i) items[i] = list[i];
}

/// The enumerants of both sides are numbered alike; `last` is the largest known one.
template <typename Wire, typename Ours>
void ReadEnum(Reading& in, Wire value, Ours last, Ours& out) {
  if (static_cast<std::uint16_t>(value) > static_cast<std::uint16_t>(last)) {
    in.Fail("an enumerant is unknown");
    return;
  }
  out = static_cast<Ours>(value);
}

template <typename Wire, typename Ours>
Wire ToWire(Ours value) {
  return static_cast<Wire>(static_cast<std::uint16_t>(value));
}

}  // namespace patchbay::protocol::codec
