// A sorted set that is mostly filled at its end and emptied from its front.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "runtime/core/ids.h"

namespace patchbay::scheduler {

/// Inserting the largest value and erasing the smallest cost O(1), anything else O(size). Up to
/// kInline values lie within the set itself.
template <typename Value, std::size_t kInline>
class FrontSet {
 public:
  using Values = absl::InlinedVector<Value, kInline>;
  using const_iterator = typename Values::const_iterator;

  const_iterator begin() const { return values_.begin() + static_cast<std::ptrdiff_t>(gone_); }
  const_iterator end() const { return values_.end(); }
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size() - gone_; }
  std::size_t count(const Value& value) const {
    return std::binary_search(begin(), end(), value) ? 1 : 0;
  }
  void insert(const Value& value) {
    if (!empty() && !(values_.back() < value)) {
      const auto at = std::lower_bound(begin(), end(), value);
      if (value < *at) values_.insert(at, value);
      return;
    }
    if (values_.size() == values_.capacity() && 2 * gone_ >= values_.size()) DropGone();
    values_.push_back(value);
  }
  /// How many were there, 0 or 1.
  std::size_t erase(const Value& value) {
    const auto first = begin();
    const auto at = empty() || !(*first < value) ? first : std::lower_bound(first, end(), value);
    if (at == end() || value < *at) return 0;
    if (at != first) {
      values_.erase(at);
    } else if (++gone_ == values_.size()) {
      DropGone();
    }
    return 1;
  }
  void clear() {
    values_.clear();
    gone_ = 0;
  }

 private:
  void DropGone() {
    values_.erase(values_.begin(), begin());
    gone_ = 0;
  }

  Values values_;
  std::size_t gone_ = 0;  ///< values at its begin that are no longer in the set
};

/// Leases that a worker holds: mostly one or two.
using LeaseSet = FrontSet<LeaseNumber, 2>;

}  // namespace patchbay::scheduler
