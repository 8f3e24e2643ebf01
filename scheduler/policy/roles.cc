#include "scheduler/policy/roles.h"

#include "runtime/wire/protocol/envelope.h"

namespace patchbay::scheduler {
namespace {

using namespace protocol;  // the names below are all messages

constexpr unsigned Bit(Role role) { return 1u << static_cast<unsigned>(role); }
constexpr unsigned kUsers = Bit(Role::kOperator) | Bit(Role::kSubmitter) | Bit(Role::kTrainer);
constexpr unsigned kTrainers = kUsers;  // a submitter trains from its own streams
constexpr unsigned kWorkers = Bit(Role::kWorker);
constexpr unsigned kOperators = Bit(Role::kOperator);
constexpr unsigned kNobody = 0;

struct AllowedRoles {
  unsigned operator()(const Heartbeat&) const { return kUsers | kWorkers; }
  unsigned operator()(const RegisterAgent&) const { return kWorkers; }
  unsigned operator()(const RegisterWorker&) const { return kWorkers; }
  unsigned operator()(const FetchStream&) const { return kWorkers; }
  unsigned operator()(const RenewLeases&) const { return kWorkers; }
  unsigned operator()(const TasksFinished&) const { return kWorkers; }
  unsigned operator()(const PutResultPart&) const { return kWorkers; }
  unsigned operator()(const ShardsReturned&) const { return kWorkers; }
  unsigned operator()(const WorkerExited&) const { return kWorkers; }
  unsigned operator()(const Drain&) const { return kWorkers; }
  unsigned operator()(const AttachTrainer&) const { return kTrainers; }
  unsigned operator()(const AnnounceSlots&) const { return kTrainers; }
  unsigned operator()(const ShardsCounted&) const { return kTrainers; }
  unsigned operator()(const ShardFenced&) const { return kTrainers; }
  unsigned operator()(const PeersDropped&) const { return kTrainers; }
  unsigned operator()(const DetachTrainer&) const { return kTrainers; }
  unsigned operator()(const FinishUnit&) const { return kTrainers; }
  unsigned operator()(const SubmitJob&) const { return kUsers; }
  unsigned operator()(const DescribeJobs&) const { return kUsers; }
  unsigned operator()(const FetchResult&) const { return kUsers | kWorkers; }
  unsigned operator()(const CancelJob&) const { return kUsers; }
  unsigned operator()(const RetryJob&) const { return kUsers; }
  unsigned operator()(const FetchLogs&) const { return kUsers; }
  unsigned operator()(const DescribeCluster&) const { return kUsers; }
  unsigned operator()(const ChangeJob&) const { return kUsers; }
  unsigned operator()(const ExplainJob&) const { return kUsers; }
  unsigned operator()(const ChangeNode&) const { return kOperators; }
  unsigned operator()(const FetchUsage&) const { return kUsers; }
  unsigned operator()(const ApplyTeams&) const { return kOperators; }
  unsigned operator()(const DescribeTeams&) const { return kUsers; }
  unsigned operator()(const AdmitBrowser&) const { return kUsers; }
  unsigned operator()(const ReloadKeys&) const { return kOperators; }
  unsigned operator()(const ShutDown&) const { return kOperators; }
  template <typename Fact>
  unsigned operator()(const Fact&) const {
    return kNobody;
  }
};

}  // namespace

Status CheckRole(Role role, const protocol::Body& body) {
  const unsigned allowed = std::visit(AllowedRoles{}, body);
  if (allowed == kNobody) {
    return InvalidArgument("receive message: only the scheduler sends this message");
  }
  if ((allowed & Bit(role)) == 0) {
    return PermissionDenied("receive message: the key's role may not send this message");
  }
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
