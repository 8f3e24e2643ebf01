#include "runtime/model/ops/op_table.h"

#include <algorithm>

namespace patchbay::plan {

const OpRow* OpTable::Find(std::string_view name) const {
  const auto row = std::find_if(rows_.begin(), rows_.end(),
                                [name](const OpRow& each) { return each.name() == name; });
  return row == rows_.end() ? nullptr : &*row;
}

std::vector<config::Key> OpTable::Keys() const {
  std::vector<config::Key> keys;
  for (const OpRow& row : rows_) keys.push_back(row.keys);
  return keys;
}

}  // namespace patchbay::plan
