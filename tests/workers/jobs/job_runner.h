// A job's tasks, run in this process as the scheduler's core leases them: repeated, in any order,
// or not to the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "tests/scheduler/in_process_scheduler.h"
#include "workers/jobs/task_table.h"

namespace patchbay::workers {

/// Runs a job to its end, on workers enough for every task that is ready: any of them next, by
/// seed.
class JobRunner {
 public:
  JobRunner(Json manifest, unsigned seed)
      : manifest_(std::move(manifest)),
        random_(seed),
        sent_(std::make_shared<std::vector<scheduler::SendAction>>()),
        scheduler_(std::make_unique<scheduler::InProcessScheduler>(
            Times(),
            [sent = sent_](scheduler::SendAction&& send) { sent->push_back(std::move(send)); })) {}

  /// Every `n`-th task is run twice, as after a lost commit.
  int repeat_every = 0;
  /// The op whose result must then be the same.
  std::string repeats_exactly;
  /// Stops (as a killed cluster would) once so many tasks were committed; 0 = never.
  int stop_after = 0;
  /// Called with a task's op right before it is run.
  std::function<void(const std::string&)> before_each;
  /// Called with a task's op and the results that it is given.
  std::function<void(const std::string&, std::vector<std::string>&)> change_inputs;
  /// Around every run of a task, also a repeated one: with its signals, then with its op.
  std::function<void(const TaskSignals&)> before_attempt;
  std::function<void(const std::string&)> after_attempt;

  void Submit(const std::string& op, const Json& payload) {
    ASSERT_TRUE(scheduler_->Start(now_).ok());
    scheduler_->Join(kUser, scheduler::Role::kOperator, "operator");
    AddNode();
    protocol::SubmitJob submit;
    submit.submission_key = op;
    submit.kind = op.substr(0, op.find('.'));
    submit.root.op = op;
    submit.root.payload = DumpJson(payload);
    submit.manifest = DumpJson(manifest_);
    specs_ = {submit.root};
    Tell(kUser, std::move(submit));
  }

  void Run() {
    for (int committed = 0; stop_after == 0 || committed < stop_after; ++committed) {
      if (!AwaitLeases()) break;
      const auto next =
          std::next(leased_.begin(), static_cast<std::ptrdiff_t>(random_() % leased_.size()));
      const Leased leased = std::move(next->second);
      leased_.erase(next);
      RunOne(leased, repeat_every > 0 && committed % repeat_every == 0);
    }
    EXPECT_TRUE(scheduler_->core().CheckInvariants().ok());
  }

  Json ResultOf(std::string_view op) const {
    for (const auto& [index, result] : results_) {
      if (specs_[index].op == op) return *ParseJson(result, op);
    }
    return Json();
  }
  std::vector<Status> Failures() const {
    std::vector<Status> failures;
    for (const auto& [index, status] : failures_) failures.push_back(status);
    return failures;
  }
  std::vector<std::string> FailedOps() const {
    std::vector<std::string> ops;
    for (const auto& [index, status] : failures_) ops.push_back(specs_[index].op);
    return ops;
  }
  std::size_t CountOf(std::string_view op) const { return MemoryOf(op).size(); }
  /// The weight of all tasks of an op together.
  std::uint64_t WeightOf(std::string_view op) const {
    std::uint64_t weight = 0;
    for (const protocol::TaskSpec& spec : specs_) {
      if (spec.op == op) weight += spec.weight;
    }
    return weight;
  }
  /// The memory that each task of that op asks for, in the order they came.
  std::vector<std::uint64_t> MemoryOf(std::string_view op) const {
    std::vector<std::uint64_t> bytes;
    for (const protocol::TaskSpec& spec : specs_) {
      if (spec.op == op) bytes.push_back(spec.resources.memory_bytes);
    }
    return bytes;
  }

 private:
  static constexpr scheduler::PeerId kUser = 1, kAgent = 2, kWorker0 = 10;
  static constexpr std::uint32_t kWorkers = 100;

  struct Leased {
    scheduler::PeerId worker = 0;
    protocol::TaskLease lease;
  };

  /// Nobody is silent for too long: time passes between attempts alone.
  static scheduler::CoreOptions Times() {
    scheduler::CoreOptions options;
    options.lease_ms = options.suspect_ms = options.lost_ms = options.forget_node_ms = 1 << 30;
    return options;
  }

  void AddNode() {
    scheduler_->Join(kAgent, scheduler::Role::kWorker, "node");
    protocol::RegisterAgent agent;
    agent.node = "node";
    agent.host_identity = "host";
    agent.cpus = kWorkers;
    agent.memory_bytes = std::uint64_t{1} << 50;
    agent.agent_incarnation = 1;
    agent.gpus.resize(1);
    Tell(kAgent, std::move(agent));
    for (std::uint32_t index = 0; index < kWorkers; ++index) {
      const scheduler::PeerId peer = kWorker0 + index;
      scheduler_->Join(peer, scheduler::Role::kWorker, "node");
      protocol::RegisterWorker worker;
      worker.node = "node";
      worker.index = index;
      worker.agent_incarnation = 1;
      worker.worker_incarnation = 100 + index;
      worker.pid = 1000 + index;
      worker.capacity = {1000, index == 0 ? 1u : 0u, std::uint64_t{1} << 50};
      worker.host_identity = "host";
      Tell(peer, std::move(worker));
    }
  }

  void Tell(scheduler::PeerId peer, protocol::Body body) {
    scheduler_->Tell(peer, std::move(body), ++requests_, now_);
    TakeSent();
  }

  void TakeSent() {
    for (scheduler::SendAction& send : *sent_) {
      if (auto* granted = std::get_if<protocol::LeasesGranted>(&send.body)) {
        for (protocol::TaskLease& lease : granted->tasks) {
          const std::uint32_t index = lease.task.index;
          leased_[index] = {send.peer, std::move(lease)};
        }
      } else if (const auto* revoked = std::get_if<protocol::LeasesRevoked>(&send.body)) {
        std::erase_if(leased_, [&](const auto& held) {
          return std::count(revoked->leases.begin(), revoked->leases.end(),
                            held.second.lease.lease) > 0;
        });
      } else if (const auto* failed = std::get_if<protocol::RequestFailed>(&send.body)) {
        ADD_FAILURE() << TextOf(failed->outcome);
      }
    }
    sent_->clear();
  }

  /// Whether there is something to run, now or after the pause before another attempt.
  bool AwaitLeases() {
    for (int pauses = 0; leased_.empty() && pauses < 100; ++pauses) {
      now_ += 1000;
      scheduler_->Tick(now_);
      TakeSent();
    }
    return !leased_.empty();
  }

  StatusOr<TaskOutput> Attempt(const protocol::TaskLease& lease) {
    TaskSignals signals;
    TaskContext context{Folders::OfThisUser(), ops::Table()};
    context.task = lease.task;
    context.lease = lease.lease;
    context.payload = *ParseJson(lease.payload, "payload");
    context.inputs = lease.inputs;
    for (const std::uint32_t index : lease.inputs_apart) context.inputs.push_back(results_[index]);
    if (change_inputs) change_inputs(lease.op, context.inputs);
    context.manifest = *ParseJson(lease.manifest, "manifest");
    context.rights = PathRights::All();
    context.allowed = AllowedFoldersOf(context.rights, context.state_folder);
    context.signals = &signals;
    if (before_attempt) before_attempt(signals);
    StatusOr<TaskOutput> output = RunTask(lease.op, context);
    if (!output.ok()) output = context.WithSubjects(output.status());  // as a worker reports it
    if (after_attempt) after_attempt(lease.op);
    return output;
  }

  void RunOne(const Leased& leased, bool twice) {
    const protocol::TaskLease& lease = leased.lease;
    if (before_each) before_each(lease.op);
    StatusOr<TaskOutput> output = Attempt(lease);
    if (twice) {
      const StatusOr<TaskOutput> again = Attempt(lease);
      ASSERT_EQ(again.ok(), output.ok()) << lease.op << ": " << Describe(again.status());
      if (output.ok() && lease.op == repeats_exactly) {
        EXPECT_EQ(again->result, output->result);
      }
    }
    Report(leased, std::move(output));
  }

  void Report(const Leased& leased, StatusOr<TaskOutput> output) {
    const std::uint32_t index = leased.lease.task.index;
    protocol::TasksFinished::Item item;
    item.lease = leased.lease.lease;
    item.task = leased.lease.task;
    failures_.erase(index);
    if (output.ok()) {
      results_[index] = output->result;
      specs_.insert(specs_.end(), output->spawned.begin(), output->spawned.end());
      item.result = std::move(output->result);
      item.spawned = std::move(output->spawned);
      while (item.result.size() > protocol::kMaxInlineResultBytes) {
        std::string part = item.result.substr(0, protocol::kMaxInlineResultBytes);
        item.result.erase(0, part.size());
        protocol::PutResultPart put{item.lease, item.task, item.result_offset, std::move(part)};
        item.result_offset += put.bytes.size();
        Tell(leased.worker, std::move(put));
      }
    } else {
      failures_[index] = output.status();
      item.outcome = OutcomeOf(output.status());
    }
    protocol::TasksFinished finished;
    finished.items.push_back(std::move(item));
    Tell(leased.worker, std::move(finished));
  }

  Json manifest_;
  std::mt19937 random_;
  std::shared_ptr<std::vector<scheduler::SendAction>> sent_;
  std::unique_ptr<scheduler::InProcessScheduler> scheduler_;
  TimeMs now_ = 1000;
  std::uint64_t requests_ = 0;
  std::vector<protocol::TaskSpec> specs_;  ///< by the tasks' indices, as are the maps below
  std::map<std::uint32_t, Leased> leased_;
  std::map<std::uint32_t, std::string> results_;
  std::map<std::uint32_t, Status> failures_;
};

}  // namespace patchbay::workers
