#include "runtime/model/draw/alias_table.h"

namespace patchbay::plan {

using Wide = unsigned __int128;

StatusOr<AliasTable> AliasTable::Of(std::span<const std::uint64_t> weights) {
  Wide total = 0;
  for (const std::uint64_t weight : weights) total += weight;
  if (total == 0 || total > kMaxTotal) {
    return InvalidArgument("weights: every weight is 0, or their sum is too large");
  }
  AliasTable table;
  table.total_ = static_cast<std::uint64_t>(total);
  table.columns_.resize(weights.size());
  // Every column holds `total` units; index i has weights[i] * n of them in all.
  std::vector<Wide> units(weights.size());
  std::vector<std::size_t> small, large;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    units[i] = Wide{weights[i]} * weights.size();
    (units[i] < total ? small : large).push_back(i);
  }
  while (!small.empty()) {
    const std::size_t needy = small.back(), giver = large.back();
    small.pop_back();
    table.columns_[needy] = {static_cast<std::uint64_t>(units[needy]), giver};
    units[giver] -= total - units[needy];
    if (units[giver] >= total) continue;
    large.pop_back();
    small.push_back(giver);
  }
  for (const std::size_t full : large) table.columns_[full] = {table.total_, full};
  return table;
}

std::size_t AliasTable::Draw(std::uint64_t bits) const {
  // The high part of bits x (columns x total) without overflow: column, then place within it.
  const Wide scaled = Wide{bits} * columns_.size();
  const auto column = static_cast<std::size_t>(scaled >> 64);
  const auto rest = static_cast<std::uint64_t>(scaled);
  const auto unit = static_cast<std::uint64_t>((Wide{rest} * total_) >> 64);
  return unit < columns_[column].own ? column : columns_[column].alias;
}

}  // namespace patchbay::plan
