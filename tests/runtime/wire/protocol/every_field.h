// Every field of every message, by structured bindings: a field that is added to messages.h and not
// here does not compile, and one that the codec forgets does not survive the round trip.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::protocol::test {

#define PATCHBAY_FIELDS(Type, ...)    \
  inline auto Fields(Type& message) { \
    auto& [__VA_ARGS__] = message;    \
    return std::tie(__VA_ARGS__);     \
  }
#define PATCHBAY_NO_FIELDS(Type)          \
  inline std::tuple<> Fields(Type&) {     \
    static_assert(std::is_empty_v<Type>); \
    return {};                            \
  }

PATCHBAY_FIELDS(LeaseNumber, a, b)
PATCHBAY_FIELDS(TaskId, a, b)
PATCHBAY_FIELDS(ShardId, a, b, c, d)
PATCHBAY_FIELDS(Grant, a, b, c, d)
PATCHBAY_FIELDS(StreamGeometry, a, b, c, d, e)
PATCHBAY_FIELDS(Resources, a, b, c)
PATCHBAY_FIELDS(Outcome, a, b)
PATCHBAY_FIELDS(TaskSpec, a, b, c, d, e, f, g, h)
PATCHBAY_FIELDS(Heartbeat, a)
PATCHBAY_FIELDS(HeartbeatSeen, a)
PATCHBAY_FIELDS(RequestFailed, a)
PATCHBAY_FIELDS(Gpu, a, b, c)
PATCHBAY_FIELDS(RegisterAgent, a, b, c, d, e, f, g)
PATCHBAY_FIELDS(AgentRegistered, a, b)
PATCHBAY_FIELDS(HeldLease, a, b, c, d, e)
PATCHBAY_FIELDS(RegisterWorker, a, b, c, d, e, f, g, h, i, j)
PATCHBAY_FIELDS(WorkerRegistered, a, b)
PATCHBAY_FIELDS(TaskLease, a, b, c, d, e, f, g, h, i, j, k)
PATCHBAY_FIELDS(ShardLease, a, b, c, d, e)
PATCHBAY_FIELDS(LeasesGranted, a, b)
PATCHBAY_FIELDS(LeasesRevoked, a)
PATCHBAY_FIELDS(FetchStream, a, b)
PATCHBAY_FIELDS(TrainerEndpoint, a, b, c, d, e, f)
PATCHBAY_FIELDS(StreamDescribed, a, b, c, d, e, f, g, h, i, j)
PATCHBAY_FIELDS(RenewLeases::Item, a, b)
PATCHBAY_FIELDS(RenewLeases, a)
PATCHBAY_FIELDS(LeasesRenewed, a)
PATCHBAY_FIELDS(TasksFinished::Item, a, b, c, d, e, f, g)
PATCHBAY_FIELDS(TasksFinished, a)
PATCHBAY_FIELDS(PutResultPart, a, b, c, d)
PATCHBAY_FIELDS(ResultPartKept, a)
PATCHBAY_FIELDS(TasksCommitted, a)
PATCHBAY_FIELDS(ShardsReturned::Item, a, b, c, d)
PATCHBAY_FIELDS(ShardsReturned, a)
PATCHBAY_FIELDS(WorkerExited, a, b, c, d)
PATCHBAY_NO_FIELDS(WorkerExitSeen)
PATCHBAY_FIELDS(KillWorker, a, b)
PATCHBAY_NO_FIELDS(Drain)
PATCHBAY_NO_FIELDS(Drained)
PATCHBAY_FIELDS(SlotRow, a, b, c, d, e, f)
PATCHBAY_FIELDS(AttachTrainer, a, b, c, d, e, f, g, h, i, j)
PATCHBAY_FIELDS(TrainerAttached, a, b, c)
PATCHBAY_FIELDS(AnnounceSlots, a, b, c)
PATCHBAY_FIELDS(ShardsCounted::Item, a, b)
PATCHBAY_FIELDS(ShardsCounted, a, b, c)
PATCHBAY_FIELDS(PeersDropped::Item, a, b, c, d)
PATCHBAY_FIELDS(PeersDropped, a, b, c)
PATCHBAY_FIELDS(FenceShard, a, b, c, d, e)
PATCHBAY_FIELDS(ShardFenced, a, b, c, d, e)
PATCHBAY_FIELDS(StreamFailed, a, b)
PATCHBAY_FIELDS(DetachTrainer, a, b)
PATCHBAY_NO_FIELDS(TrainerDetached)
PATCHBAY_FIELDS(SubmitJob, a, b, c, d, e, f, g, h)
PATCHBAY_FIELDS(JobSubmitted, a)
PATCHBAY_FIELDS(FailedTask, a, b, c)
PATCHBAY_FIELDS(JobRow, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
PATCHBAY_FIELDS(DescribeJobs, a, b)
PATCHBAY_FIELDS(JobsDescribed, a)
PATCHBAY_FIELDS(FetchResult, a, b)
PATCHBAY_FIELDS(ResultFetched, a, b, c, d)
PATCHBAY_FIELDS(CancelJob, a)
PATCHBAY_NO_FIELDS(JobCancelled)
PATCHBAY_FIELDS(RetryJob, a)
PATCHBAY_FIELDS(JobRetried, a)
PATCHBAY_FIELDS(FetchLogs, a, b)
PATCHBAY_FIELDS(LogsFetched::Line, a, b, c)
PATCHBAY_FIELDS(LogsFetched, a)
PATCHBAY_FIELDS(NodeRow, a, b, c, d, e)
PATCHBAY_FIELDS(WorkerRow, a, b, c, d, e, f, g)
PATCHBAY_NO_FIELDS(DescribeCluster)
PATCHBAY_FIELDS(ClusterDescribed, a, b, c, d)
PATCHBAY_NO_FIELDS(ReloadKeys)
PATCHBAY_NO_FIELDS(KeysReloaded)
PATCHBAY_NO_FIELDS(ShutDown)
PATCHBAY_NO_FIELDS(ShuttingDown)
#undef PATCHBAY_FIELDS
#undef PATCHBAY_NO_FIELDS

/// The number of enumerants of an enum of the protocol.
inline int Count(Numerics) { return 3; }
inline int Count(Tail) { return 4; }
inline int Count(JobState) { return 6; }
inline int Count(TaskState) { return 7; }
inline int Count(SlotState) { return 4; }

/// Fills with values that differ from the defaults and from each other.
class Filler {
 public:
  explicit Filler(std::uint64_t seed) : random_(seed) {}

  void Fill(bool& value) { value = true; }
  void Fill(std::string& value) {
    value.resize(1 + random_() % 24);
    for (char& c : value) c = static_cast<char>(1 + random_() % 255);
  }
  void Fill(Digest& value) {
    for (auto& byte : value.bytes) byte = static_cast<std::uint8_t>(1 + random_() % 255);
  }
  void Fill(HeldLease& value) {
    Fill(value.lease);
    value.is_shard = random_() % 2 == 0;
    if (value.is_shard) {
      Fill(value.stream);
      Fill(value.shard);
    } else {
      Fill(value.task);
    }
  }
  template <typename T>
  void Fill(std::vector<T>& values) {
    values.resize(1 + random_() % 3);
    for (T& each : values) Fill(each);
  }
  template <typename T>
  void Fill(T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(1 + random_() % static_cast<unsigned>(Count(T{}) - 1));
    } else if constexpr (std::is_integral_v<T>) {
      while (value == T{}) value = static_cast<T>(random_());
    } else {
      std::apply([this](auto&... fields) { (this->Fill(fields), ...); }, Fields(value));
    }
  }

 private:
  std::mt19937_64 random_;
};

template <typename T>
bool Equal(const T& left, const T& right);

template <typename T>
bool Equal(const std::vector<T>& left, const std::vector<T>& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!Equal(left[i], right[i])) return false;
  }
  return true;
}

template <typename T>
bool Equal(const T& left, const T& right) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                std::is_same_v<T, Digest>) {
    return left == right;
  } else {
    T l = left, r = right;
    auto lefts = Fields(l);
    auto rights = Fields(r);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (Equal(std::get<I>(lefts), std::get<I>(rights)) && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(lefts)>>());
  }
}

inline bool Equal(const Body& left, const Body& right) {
  if (left.index() != right.index()) return false;
  return std::visit(
      [&](const auto& l) { return Equal(l, std::get<std::decay_t<decltype(l)>>(right)); }, left);
}

/// An envelope of the body's index-th alternative, filled from the seed.
template <std::size_t... I>
Envelope FilledAt(std::size_t index, std::uint64_t seed, std::index_sequence<I...>) {
  Filler filler(seed);
  Envelope envelope;
  filler.Fill(envelope.sender_incarnation);
  filler.Fill(envelope.request_id);
  const bool found =
      ((I == index ? (filler.Fill(envelope.body.emplace<I>()), true) : false) || ...);
  PB_CHECK(found);
  return envelope;
}

inline constexpr std::size_t kBodies = std::variant_size_v<Body>;

inline Envelope Filled(std::size_t index, std::uint64_t seed) {
  return FilledAt(index, seed, std::make_index_sequence<kBodies>());
}

}  // namespace patchbay::protocol::test
