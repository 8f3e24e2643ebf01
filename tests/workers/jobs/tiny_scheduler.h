// A job's tasks, run in this process by a small scheduler that may repeat, reorder and lose them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "workers/jobs/task_table.h"

namespace patchbay::workers {

/// Runs a job to its end: any ready task next, by seed.
class TinyScheduler {
 public:
  TinyScheduler(Json manifest, unsigned seed) : manifest_(std::move(manifest)), random_(seed) {}

  /// Every `n`-th task is run twice, as after a lost commit.
  int repeat_every = 0;
  /// The op whose result must then be the same.
  std::string repeats_exactly;
  /// Stops (as a killed cluster would) once so many tasks were committed; 0 = never.
  int stop_after = 0;
  /// Called with a task's op right before it is run.
  std::function<void(const std::string&)> before_each;
  /// Around every run of a task, also a repeated one: with its signals, then with its op.
  std::function<void(const TaskSignals&)> before_attempt;
  std::function<void(const std::string&)> after_attempt;

  void Submit(const std::string& op, const Json& payload) {
    protocol::TaskSpec root;
    root.op = op;
    root.payload = DumpJson(payload);
    tasks_ = {Row{root, State::kWaiting, "", absl::OkStatus()}};
  }

  void Run() {
    for (int committed = 0; stop_after == 0 || committed < stop_after; ++committed) {
      const std::vector<std::size_t> ready = Ready();
      if (ready.empty()) return;
      RunOne(ready[random_() % ready.size()], repeat_every > 0 && committed % repeat_every == 0);
    }
  }

  Json ResultOf(std::string_view op) const {
    for (const Row& row : tasks_) {
      if (row.spec.op == op && row.state == State::kDone) return *ParseJson(row.result, op);
    }
    return Json();
  }
  std::vector<Status> Failures() const {
    std::vector<Status> failures;
    for (const Row& row : tasks_) {
      if (row.state == State::kFailed) failures.push_back(row.status);
    }
    return failures;
  }
  std::vector<std::string> FailedOps() const {
    std::vector<std::string> ops;
    for (const Row& row : tasks_) {
      if (row.state == State::kFailed) ops.push_back(row.spec.op);
    }
    return ops;
  }
  std::size_t CountOf(std::string_view op) const {
    return static_cast<std::size_t>(std::count_if(
        tasks_.begin(), tasks_.end(), [&](const Row& row) { return row.spec.op == op; }));
  }
  /// The memory that each task of that op asks for, in the order they came.
  /// Of all tasks of an op together.
  std::uint64_t WeightOf(std::string_view op) const {
    std::uint64_t weight = 0;
    for (const Row& row : tasks_) {
      if (row.spec.op == op) weight += row.spec.weight;
    }
    return weight;
  }
  std::vector<std::uint64_t> MemoryOf(std::string_view op) const {
    std::vector<std::uint64_t> bytes;
    for (const Row& row : tasks_) {
      if (row.spec.op == op) bytes.push_back(row.spec.resources.memory_bytes);
    }
    return bytes;
  }

 private:
  enum class State { kWaiting, kDone, kFailed, kCancelled };
  struct Row {
    protocol::TaskSpec spec;
    State state;
    std::string result;
    Status status;
  };

  std::vector<std::size_t> Ready() const {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].state == State::kWaiting && IsReady(i)) ready.push_back(i);
    }
    return ready;
  }

  bool IsReady(std::size_t index) const {
    const protocol::TaskSpec& spec = tasks_[index].spec;
    if (spec.after_failures && spec.depends_on.empty()) {
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (i != index && tasks_[i].state == State::kWaiting) return false;
      }
      return true;
    }
    return std::all_of(spec.depends_on.begin(), spec.depends_on.end(),
                       [&](std::uint32_t d) { return tasks_[d].state == State::kDone; });
  }

  StatusOr<TaskOutput> Attempt(const protocol::TaskSpec& spec) {
    TaskSignals signals;
    TaskContext context;
    context.lease = {1, ++leases_};
    context.payload = *ParseJson(spec.payload, "payload");
    for (std::uint32_t d : spec.depends_on) context.inputs.push_back(tasks_[d].result);
    context.manifest = manifest_;
    context.rights = PathRights::All();
    context.allowed = AllowedFoldersOf(context.rights, context.state_folder);
    context.signals = &signals;
    if (before_attempt) before_attempt(signals);
    StatusOr<TaskOutput> output = RunTask(spec.op, context);
    if (!output.ok()) output = context.WithSubjects(output.status());  // as a worker reports it
    if (after_attempt) after_attempt(spec.op);
    return output;
  }

  void RunOne(std::size_t index, bool twice) {
    const protocol::TaskSpec spec = tasks_[index].spec;
    if (before_each) before_each(spec.op);
    StatusOr<TaskOutput> output = Attempt(spec);
    if (twice) {
      const StatusOr<TaskOutput> again = Attempt(spec);
      ASSERT_EQ(again.ok(), output.ok()) << spec.op << ": " << Describe(again.status());
      if (output.ok() && spec.op == repeats_exactly) {
        EXPECT_EQ(again->result, output->result);
      }
    }
    if (!output.ok()) {
      Fail(index, output.status());
      return;
    }
    tasks_[index].state = State::kDone;
    tasks_[index].result = output->result;
    const auto base = static_cast<std::uint32_t>(tasks_.size());
    for (protocol::TaskSpec task : output->spawned) {
      for (std::uint32_t& d : task.depends_on) {
        if (d >= protocol::kSpawnedBase) d = d - protocol::kSpawnedBase + base;
      }
      tasks_.push_back(Row{std::move(task), State::kWaiting, "", absl::OkStatus()});
    }
  }

  void Fail(std::size_t index, const Status& status) {
    tasks_[index].state = State::kFailed;
    tasks_[index].status = status;
    for (Row& row : tasks_) {
      if (row.state == State::kWaiting && row.spec.group == tasks_[index].spec.group &&
          !row.spec.after_failures) {
        row.state = State::kCancelled;
      }
    }
  }

  Json manifest_;
  std::mt19937 random_;
  std::vector<Row> tasks_;
  std::uint64_t leases_ = 0;
};

}  // namespace patchbay::workers
