// A message with its envelope. Code that sends or takes messages includes this, other code
// messages.h: to compile so many alternatives takes a second or two.
#pragma once

#include <cstdint>
#include <variant>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::protocol {

/// One of the messages. envelope.cc alone has the code that copies, moves and destroys one.
struct Body
    : std::variant<
          Heartbeat, HeartbeatSeen, RequestFailed, RegisterAgent, AgentRegistered, RegisterWorker,
          WorkerRegistered, LeasesGranted, LeasesRevoked, FetchStream, StreamDescribed, RenewLeases,
          LeasesRenewed, TasksFinished, TasksCommitted, ShardsReturned, WorkerExited,
          WorkerExitSeen, KillWorker, Drain, Drained, AttachTrainer, TrainerAttached, AnnounceSlots,
          ShardsCounted, FenceShard, ShardFenced, StreamFailed, DetachTrainer, TrainerDetached,
          SubmitJob, JobSubmitted, DescribeJobs, JobsDescribed, FetchResult, ResultFetched,
          CancelJob, JobCancelled, RetryJob, JobRetried, FetchLogs, LogsFetched, DescribeCluster,
          ClusterDescribed, ReloadKeys, KeysReloaded, ShutDown, ShuttingDown, PutResultPart,
          ResultPartKept, PeersDropped, UnitsAssigned, FinishUnit, UnitFinished, ChangeJob,
          JobChanged, ExplainJob, JobExplained, ChangeNode, NodeChanged, FetchUsage, UsageFetched,
          ApplyTeams, TeamsApplied, DescribeTeams, TeamsDescribed, AdmitBrowser, BrowserAdmitted> {
  using variant::variant;
  Body();
  Body(const Body& other);
  Body(Body&& other) noexcept;
  Body& operator=(const Body& other);
  Body& operator=(Body&& other) noexcept;
  ~Body();
};

/// One message. request_id pairs a command with its fact; 0 = unasked. A command repeated with the
/// same (sender_incarnation, request_id) has the effect of one.
struct Envelope {
  std::uint16_t version = kProtocolVersion;
  std::uint64_t sender_incarnation = 0;
  std::uint64_t request_id = 0;
  Body body;
};

}  // namespace patchbay::protocol
