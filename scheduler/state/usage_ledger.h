// Consumption by hour, team, user and job: part of the durable state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "runtime/wire/protocol/messages.h"
#include "scheduler/state/wire.h"

namespace patchbay::scheduler {

void Add(protocol::WorkCost& to, const protocol::WorkCost& cost);

/// The payer of some work. Job 0: all jobs of the user.
struct Payer {
  JobId job = 0;
  std::string team, user;
  auto operator<=>(const Payer&) const = default;
};

/// Costs of work that counted, and of work that did not.
struct Usage {
  protocol::WorkCost counted, wasted;
  bool operator==(const Usage&) const = default;
};

/// An amount that a payer owes.
struct Charge {
  Payer payer;
  Usage usage;
};
void Write(WireWriter& out, const Payer& payer, const Usage& usage);
Charge ReadCharge(WireReader& in);

/// Equal calls give equal ledgers: replay rebuilds it. Hours older than kUsageKeptSeconds before
/// the last charge are dropped. Rows of jobs are folded into rows of their users after
/// kUsageOfJobsSeconds, or sooner beyond kMaxUsageRows or kMaxUsageBytes; then the oldest hours go.
class UsageLedger {
 public:
  /// The hour as its first second, since 1970.
  using Key = std::tuple<std::int64_t, Payer>;

  /// `at`: seconds since 1970.
  void Take(std::int64_t at, const Payer& payer, const Usage& usage);

  const std::map<Key, Usage>& rows() const { return rows_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// The sum of all charges that this object took: not durable, and nothing makes it smaller.
  const Usage& taken() const { return taken_; }

  void Encode(WireWriter& out) const;
  /// False when the bytes are damaged.
  bool Decode(WireReader& in);

 private:
  void Put(std::int64_t hour, const Payer& payer, const Usage& usage);
  void Erase(std::map<Key, Usage>::iterator row);
  /// Folds rows of jobs of the hours before `hour`.
  void FoldBefore(std::int64_t hour);
  void Bound();

  std::map<Key, Usage> rows_;
  std::int64_t folded_before_ = 0;  ///< rows of earlier hours have no job
  std::uint64_t size_bytes_ = 0;
  Usage taken_;
};

}  // namespace patchbay::scheduler
