#include "scheduler/core/unit_pool.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/core/job_access.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

bool UnitPool::IsFinished(const Stream& stream, std::uint64_t unit) const {
  return barrier_.table().Find(stream.job)->units.Has(unit);
}

/// The lowest unit that nobody has and that is not finished.
std::optional<std::uint64_t> UnitPool::Lowest(Stream& stream) const {
  UnitTable& table = stream.units;
  const std::uint64_t count = stream.geometry.units.units();
  while (table.fresh < count &&
         (IsFinished(stream, table.fresh) || table.holders.count(table.fresh) != 0)) {
    ++table.fresh;
  }
  if (!table.returned.empty()) return std::min(*table.returned.begin(), table.fresh);
  return table.fresh < count ? std::optional(table.fresh) : std::nullopt;
}

bool UnitPool::Assign(Stream& stream, Trainer& trainer) {
  // A consumer that is not back yet may have any of them.
  if (recovery_.IsFromBefore(stream.job) && !recovery_.TrainersAreBack()) return false;
  const std::vector<AssignedUnit>& held = trainer.course.units();
  if (held.size() >= kMaxUnitsHeld) return false;
  const std::optional<std::uint64_t> unit = Lowest(stream);
  if (!unit.has_value()) return false;
  Position end = trainer.next;
  if (!held.empty()) end = std::max(end, EndOf(stream.geometry, held.back()));
  const bool passed = stream.geometry.units.At(*unit).first_batch < end.batch;
  if (!trainer.course.Add(stream.geometry, {end.epoch + (passed ? 1 : 0), *unit})) return false;
  stream.units.returned.erase(*unit);
  stream.units.holders[*unit] = trainer.rank;
  Tell(stream, trainer);
  return true;
}

std::optional<Position> UnitPool::NextBatch(Stream& stream, Trainer& trainer) {
  if (stream.geometry.units.empty()) {
    return SkipEmpty(stream.geometry, trainer.rank, trainer.next);
  }
  do {
    const std::optional<Position> at = trainer.course.At(stream.geometry, trainer.next);
    if (at.has_value()) return at;
  } while (Assign(stream, trainer));
  return std::nullopt;
}

Status UnitPool::CheckNamed(const Stream& stream, const protocol::AttachTrainer& message) const {
  const auto refuse = [&](std::string_view cause) {
    return InvalidArgument("attach trainer: stream ", stream.job, ": ", cause);
  };
  if (message.units.size() > kMaxUnitsHeld) return refuse("it names too many units");
  for (const AssignedUnit& one : message.units) {
    if (one.unit >= stream.geometry.units.units() || one.epoch > kMaxEpoch) {
      return refuse("it names a unit that there is not");
    }
    const auto holder = stream.units.holders.find(one.unit);
    if (holder == stream.units.holders.end() || holder->second == message.rank) continue;
    return Aborted("attach trainer: stream ", stream.job, ": unit ", one.unit,
                   " went to another consumer while this one was away: start over");
  }
  return absl::OkStatus();
}

void UnitPool::TakeNamed(Stream& stream, Trainer& trainer, std::vector<AssignedUnit> units) {
  std::sort(units.begin(), units.end());
  for (const AssignedUnit& one : units) {
    const bool finished = IsFinished(stream, one.unit);
    if (finished && !(trainer.next < EndOf(stream.geometry, one))) continue;
    if (!trainer.course.Add(stream.geometry, one) || finished) continue;
    stream.units.returned.erase(one.unit);
    stream.units.holders[one.unit] = trainer.rank;
  }
}

void UnitPool::Tell(const Stream& stream, const Trainer& trainer) {
  if (stream.geometry.units.empty()) return;
  barrier_.Send(trainer.peer, 0,
                protocol::UnitsAssigned{stream.job, trainer.rank, trainer.course.units(), false});
}

void UnitPool::TakeBack(Stream& stream, Trainer& trainer, bool died) {
  const UnitCourse course = std::exchange(trainer.course, {});
  for (const AssignedUnit& one : course.units()) {
    const auto holder = stream.units.holders.find(one.unit);
    if (holder == stream.units.holders.end() || holder->second != trainer.rank) continue;
    stream.units.holders.erase(holder);
    stream.units.returned.insert(one.unit);
    // It worked on the first; the others were only made ready.
    if (!std::exchange(died, false)) continue;
    const std::uint32_t deaths = ++stream.units.deaths[one.unit];
    if (deaths < kMaxUnitDeaths) continue;
    Fail(stream, one.unit,
         OutcomeOf(Aborted("map unit ", one.unit, ": ", deaths, " consumers ended with it")));
  }
}

void UnitPool::Fail(Stream& stream, std::uint64_t unit, Outcome&& outcome) {
  if (IsFinished(stream, unit)) return;
  logs_.Add(stream.job, StrCat("unit ", unit, " failed"), outcome);
  Cut(outcome, kMaxOutcomeBytes);
  barrier_.Emit(FinishUnitRecord{stream.job, unit, std::move(outcome)});
  stream.units.holders.erase(unit);
  stream.units.returned.erase(unit);
  stream.units.deaths.erase(unit);
  EndIfDone(stream);
}

Outcome UnitPool::FailOf(Stream& stream, const ShardId& shard, Outcome&& outcome) {
  const std::uint64_t unit = stream.geometry.units.OfBatch(shard.batch).number;
  Outcome told = outcome;
  told.code = static_cast<std::int32_t>(absl::StatusCode::kAborted);
  Fail(stream, unit, std::move(outcome));
  return told;
}

void UnitPool::EndIfDone(const Stream& stream) {
  const FinishedUnits& units = barrier_.table().Find(stream.job)->units;
  const std::uint64_t count = stream.geometry.units.units();
  if (count == 0 || units.count != count) return;
  StreamEnd end{stream.job, JobState::kDone, {}};
  if (!units.failed.empty()) {
    end.state = JobState::kPartlyFailed;
    end.outcome =
        OutcomeOf(FailedPrecondition("map: ", units.failed.size(), " of ", count, " units failed"));
  }
  streams_.EndLater(std::move(end));
}

void UnitPool::Finish(const Request& request, protocol::FinishUnit&& message) {
  const Job* job = VisibleJob(barrier_, request, message.stream);
  if (job == nullptr) return;
  Stream* const stream = streams_.Find(message.stream);
  const bool is_known = job->units.Has(message.unit);
  if (!is_known && (stream == nullptr || message.unit >= stream->geometry.units.units())) {
    return barrier_.Refuse(
        request, FailedPrecondition("finish unit: stream ", message.stream, ": ",
                                    stream == nullptr ? "it has ended" : "it has no such unit"));
  }
  if (!is_known && message.outcome.code != 0) {
    Fail(*stream, message.unit, std::move(message.outcome));
  } else if (!is_known) {
    barrier_.Emit(FinishUnitRecord{message.stream, message.unit, {}});
    stream->units.holders.erase(message.unit);
    stream->units.returned.erase(message.unit);
    EndIfDone(*stream);
  }
  Trainer* const trainer = streams_.Find(RankId{message.stream, message.rank});
  if (trainer != nullptr && trainer->peer == request.peer) trainer->course.Remove(message.unit);
  barrier_.Answer(request, protocol::UnitFinished{});
}

Status UnitPool::Check(const JobTable& table) const {
  for (const auto& [id, stream] : streams_.streams()) {
    const FinishedUnits& finished = table.Find(id)->units;
    for (const auto& [unit, rank] : stream.units.holders) {
      const auto holder = stream.trainers.find(rank);
      const bool has =
          holder != stream.trainers.end() &&
          std::any_of(holder->second.course.units().begin(), holder->second.course.units().end(),
                      [&, number = unit](const AssignedUnit& one) { return one.unit == number; });
      if (!has) return Broken(StrCat("unit ", unit, " is held by nobody"));
      if (finished.Has(unit)) return Broken(StrCat("unit ", unit, " is held and finished"));
    }
    for (const std::uint64_t unit : stream.units.returned) {
      if (!finished.Has(unit) && stream.units.holders.count(unit) == 0) continue;
      return Broken(StrCat("unit ", unit, " is held or finished, and to be given away"));
    }
    for (const auto& [rank, trainer] : stream.trainers) {
      for (const AssignedUnit& one : trainer.course.units()) {
        const auto holder = stream.units.holders.find(one.unit);
        const bool own = holder != stream.units.holders.end() && holder->second == rank;
        if (!own && !finished.Has(one.unit)) {
          return Broken(StrCat("unit ", one.unit, " is with a consumer that does not hold it"));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
