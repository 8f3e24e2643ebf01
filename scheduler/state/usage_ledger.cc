#include "scheduler/state/usage_ledger.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {
namespace {

constexpr std::int64_t kHour = 3'600;

std::int64_t HourOf(const UsageLedger::Key& key) { return std::get<0>(key); }
const Payer& PayerOf(const UsageLedger::Key& key) { return std::get<1>(key); }

/// Memory of a row, its place in the map included.
std::uint64_t BytesOf(const UsageLedger::Key& key) {
  const Payer& payer = PayerOf(key);
  return sizeof(key) + sizeof(Usage) + 64 + payer.team.size() + payer.user.size();
}

}  // namespace

void Add(protocol::WorkCost& to, const protocol::WorkCost& cost) {
  to.cpu_us += cost.cpu_us;
  to.gpu_us += cost.gpu_us;
  to.bytes_read += cost.bytes_read;
  to.bytes_delivered += cost.bytes_delivered;
}

void Write(WireWriter& out, const Payer& payer, const Usage& usage) {
  out.U64(payer.job);
  out.Text(payer.team);
  out.Text(payer.user);
  out.Cost(usage.counted);
  out.Cost(usage.wasted);
}

Charge ReadCharge(WireReader& in) {
  Charge charge;
  charge.payer.job = in.U64();
  charge.payer.team = in.Text();
  charge.payer.user = in.Text();
  charge.usage.counted = in.Cost();
  charge.usage.wasted = in.Cost();
  return charge;
}

void UsageLedger::Take(std::int64_t at, const Payer& payer, const Usage& usage) {
  if (usage == Usage{}) return;
  Add(taken_.counted, usage.counted);
  Add(taken_.wasted, usage.wasted);
  const std::int64_t hour = at / kHour * kHour;
  Put(hour, payer, usage);
  FoldBefore(hour - kUsageOfJobsSeconds);
  while (HourOf(rows_.begin()->first) < hour - kUsageKeptSeconds) Erase(rows_.begin());
  Bound();
}

void UsageLedger::Put(std::int64_t hour, const Payer& payer, const Usage& usage) {
  Key key{hour, payer};
  if (hour < folded_before_) std::get<1>(key).job = 0;
  const auto [row, fresh] = rows_.try_emplace(std::move(key));
  if (fresh) size_bytes_ += BytesOf(row->first);
  Add(row->second.counted, usage.counted);
  Add(row->second.wasted, usage.wasted);
}

void UsageLedger::Erase(std::map<Key, Usage>::iterator row) {
  size_bytes_ -= BytesOf(row->first);
  rows_.erase(row);
}

void UsageLedger::FoldBefore(std::int64_t hour) {
  if (hour <= folded_before_) return;
  const auto end = rows_.lower_bound(Key{hour, {}});
  auto row = rows_.lower_bound(Key{std::exchange(folded_before_, hour), {}});
  while (row != end) {
    const auto next = std::next(row);
    if (PayerOf(row->first).job != 0) {
      const auto [key, usage] = *row;
      Erase(row);
      Put(HourOf(key), PayerOf(key), usage);
    }
    row = next;
  }
}

void UsageLedger::Bound() {
  const auto full = [this] { return rows_.size() > kMaxUsageRows || size_bytes_ > kMaxUsageBytes; };
  while (full() && folded_before_ <= HourOf(rows_.rbegin()->first)) {
    const auto first = rows_.lower_bound(Key{folded_before_, {}});
    FoldBefore(HourOf(first->first) + kHour);
  }
  while (full()) Erase(rows_.begin());
}

void UsageLedger::Encode(WireWriter& out) const {
  out.I64(folded_before_);
  out.U64(rows_.size());
  for (const auto& [key, usage] : rows_) {
    out.I64(HourOf(key));
    Write(out, PayerOf(key), usage);
  }
}

bool UsageLedger::Decode(WireReader& in) {
  folded_before_ = in.I64();
  const std::size_t rows = in.Count();
  for (std::size_t i = 0; i < rows && in.ok(); ++i) {
    const std::int64_t hour = in.I64();
    const Charge charge = ReadCharge(in);
    Put(hour, charge.payer, charge.usage);
  }
  return in.ok();
}

}  // namespace patchbay::scheduler
