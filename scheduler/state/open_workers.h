// Workers that may be given more work, the least loaded first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "scheduler/state/id_set.h"

namespace patchbay::scheduler {

/// Pairs of load and worker, in their order. Every grant moves a worker to another load, and of
/// thousands of workers a tree would read a dozen places of memory for it. An iterator is a place
/// in the order: it stays valid when workers leave, also its own.
class OpenWorkers {
 public:
  using value_type = std::pair<std::uint32_t, std::uint32_t>;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = OpenWorkers::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = value_type;

    value_type operator*() const { return at_; }
    const value_type* operator->() const { return &at_; }
    Iterator& operator++() { return *this = open_->lower_bound({at_.first, at_.second + 1}); }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    friend class OpenWorkers;
    Iterator(const OpenWorkers* open, value_type at) : open_(open), at_(at) {}
    const OpenWorkers* open_;
    value_type at_;
  };

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  Iterator begin() const { return lower_bound({0, 0}); }
  Iterator end() const { return {this, {IdSet::kNone, IdSet::kNone}}; }
  /// The first one that is not before `from`.
  Iterator lower_bound(value_type from) const {
    if (from.first < by_load_.size()) {
      const std::uint32_t same = by_load_[from.first].Next(from.second);
      if (same != IdSet::kNone) return {this, {from.first, same}};
    }
    const std::uint32_t load = loads_.Next(from.first + 1);
    const bool other = from.first != IdSet::kNone && load != IdSet::kNone;
    return other ? Iterator{this, {load, by_load_[load].Next(0)}} : end();
  }
  /// The first one that is not before `from` and is among those workers.
  Iterator lower_bound(value_type from, const IdSet& among) const {
    if (from.first == IdSet::kNone) return end();
    for (std::uint32_t load = loads_.Next(from.first); load != IdSet::kNone;
         load = loads_.Next(load + 1)) {
      const std::uint32_t first = load == from.first ? from.second : 0;
      const std::uint32_t same = by_load_[load].NextOfBoth(among, first);
      if (same != IdSet::kNone) return {this, {load, same}};
    }
    return end();
  }
  std::size_t count(value_type one) const {
    return one.first < by_load_.size() && by_load_[one.first].Has(one.second) ? 1 : 0;
  }
  void insert(value_type one) {
    if (by_load_.size() <= one.first) by_load_.resize(one.first + 1);
    size_ += by_load_[one.first].Insert(one.second) ? 1 : 0;
    loads_.Insert(one.first);
  }
  void erase(value_type one) {
    if (count(one) == 0) return;
    --size_;
    IdSet& workers = by_load_[one.first];
    workers.Erase(one.second);
    if (workers.empty()) loads_.Erase(one.first);
  }

 private:
  std::vector<IdSet> by_load_;  ///< a load is at most kMaxQueueDepth
  IdSet loads_;                 ///< loads of some worker
  std::size_t size_ = 0;
};

}  // namespace patchbay::scheduler
