// Consumers of streams with units: they come, go, are killed, start over, and finish whole units.
#include <algorithm>
#include <utility>

#include "tests/sim/sim_cluster.h"

namespace patchbay::sim {
namespace {

constexpr std::uint32_t kFirstRank = 1000;  ///< nobody counts these

}  // namespace

/// A job that is not over always has one that works.
void World::TendConsumers(SimJob& job) {
  const bool over =
      job.state != protocol::JobState::kQueued && job.state != protocol::JobState::kRunning;
  if (over || job.id == 0) return;
  const auto working = std::count_if(trainers_.begin(), trainers_.end(), [&](const auto& one) {
    return one.stream == job.id && !one.detached && one.failure.empty();
  });
  if (working != 0 && (healed_ || working >= 4 || !dice_.Chance(0.05))) return;
  Hit("consumer comes");
  StartTrainer(job, kFirstRank + next_rank_++);
  trainers_.back().is_consumer = true;
  trainers_.back().wanted = UINT64_MAX;
}

/// The process is gone; another one may come with a rank of its own.
void World::StartOver(SimTrainer& consumer, bool comes_back) {
  consumer.rank = kFirstRank + next_rank_++;
  consumer.next = {};
  consumer.history.clear();
  consumer.leaves = false;
  consumer.taken_of.clear();
  consumer.to_finish.clear();
  NewTrainerProcess(consumer);
  consumer.detached = !comes_back;
}

/// A consumer that is killed, or leaves with units that are not finished.
void World::EndConsumer(SimTrainer& consumer) {
  if (dice_.Chance(0.4)) {
    Hit("consumer leaves");
    consumer.leaves = true;
    return;
  }
  Hit("consumer killed");
  StartOver(consumer, dice_.Chance(0.5));
}

/// True when the message was one of those that only consumers get.
bool World::ConsumerReceive(SimTrainer& consumer, const Body& body, std::uint64_t request) {
  if (const auto* units = std::get_if<protocol::UnitsAssigned>(&body)) {
    if (units->all_finished) consumer.detached = true;
    if (consumer.table != nullptr && units->rank == consumer.rank) {
      consumer.table->AddUnits(units->units);
    }
    return true;
  }
  if (std::holds_alternative<protocol::UnitFinished>(body)) {
    const std::uint64_t unit = request - kFinishRequest;
    if (consumer.to_finish.erase(unit) == 0 || consumer.table == nullptr) return true;
    const bool whole = consumer.taken_of.count(unit) == 0;
    consumer.table->RemoveUnit(unit);
    if (!whole) consumer.leaves = true;  // it failed half-way
    return true;
  }
  if (const auto* failed = std::get_if<protocol::RequestFailed>(&body)) {
    if (request < kFinishRequest && failed->outcome.code == kAbortedCode) consumer.leaves = true;
    return true;
  }
  const auto* failed = std::get_if<protocol::StreamFailed>(&body);
  if (failed == nullptr || failed->outcome.code != kAbortedCode) return false;
  consumer.leaves = true;
  return true;
}

/// Sends what it has to say every half second. False when nothing else is to be sent.
bool World::ConsumerLoop(SimTrainer& consumer) {
  for (const auto& [unit, code] : consumer.to_finish) {
    protocol::FinishUnit finish{consumer.stream, consumer.rank, unit, {}};
    finish.outcome.code = code;
    ToScheduler(consumer.actor, finish, kFinishRequest + unit);
  }
  if (!consumer.leaves) return true;
  ToScheduler(consumer.actor, protocol::DetachTrainer{consumer.stream, consumer.rank}, 9);
  return false;
}

/// I19: the batches of a unit come whole and in order, to whoever has it.
void World::TookOfUnit(SimTrainer& consumer, Position at) {
  const StreamUnit unit = consumer.geometry.units.OfBatch(at.batch);
  const auto before = consumer.taken_of.emplace(unit.number, unit.first_batch).first;
  if (before->second != at.batch) {
    Violation(StrCat("I19: batch ", at.ToString(), " of unit ", unit.number, " came, not ",
                     before->second));
  }
  const bool fails = dice_.Chance(0.01);
  if (++before->second == unit.end_batch()) {
    consumer.taken_of.erase(before);
  } else if (!fails) {
    return;
  }
  if (fails) Hit("unit failed by its consumer");
  const TimeMs works = dice_.Between(0, consumer.step_ms);
  AtActor(consumer.actor, now_ + works, [this, &consumer, number = unit.number, fails] {
    consumer.to_finish[number] = fails ? kFailedCode : 0;
    ConsumerLoop(consumer);
  });
}

/// I19: the scheduler says of one consumer at a time that a unit is its own.
void World::CheckUnitsTold(const Actor& actor, const protocol::UnitsAssigned& told) {
  const auto consumer = std::find_if(trainers_.begin(), trainers_.end(),
                                     [&](const auto& one) { return &one.actor == &actor; });
  if (consumer == trainers_.end() || told.rank != consumer->rank) return;
  for (const AssignedUnit& one : told.units) {
    if (audit_.IsFinished(told.stream, one.unit)) continue;
    std::deque<std::uint32_t>& ranks = told_[{told.stream, one.unit}];
    if (!ranks.empty() && ranks.back() == told.rank) continue;
    if (std::find(ranks.begin(), ranks.end(), told.rank) != ranks.end()) {
      Violation(StrCat("I19: unit ", one.unit, " is with two consumers at once"));
    }
    ranks.push_back(told.rank);
  }
}

}  // namespace patchbay::sim
