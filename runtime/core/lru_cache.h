// A bounded cache that drops the least recently used values first.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace patchbay {

/// Values by key, each with a cost. Above `cost_max` in all the least recently used ones go, but
/// `entries_min` stay whatever they cost. Not thread-safe: its owner's lock guards it. Functions
/// that let values go return them, so that the caller may destroy them without that lock.
template <typename Key, typename Value>
class LruCache {
 public:
  struct Entry {
    Key key;
    Value value;
    std::size_t cost = 1;
  };
  using Entries = std::list<Entry>;

  explicit LruCache(std::size_t cost_max, std::size_t entries_min = 1)
      : cost_max_(cost_max), entries_min_(entries_min) {}

  /// The value, from now on the most recently used one; null when there is none. Valid until
  /// another call that lets values go.
  Value* Find(const Key& key) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, found->second);
    return &found->second->value;
  }

  /// Keeps the value in place of an earlier one of that key.
  Entries Insert(const Key& key, Value value, std::size_t cost = 1) {
    Entries let_go = Erase(key);
    recent_.push_front({key, std::move(value), cost});
    by_key_[key] = recent_.begin();
    cost_ += cost;
    while (cost_ > cost_max_ && recent_.size() > entries_min_)
      Move(std::prev(recent_.end()), let_go);
    return let_go;
  }

  Entries Erase(const Key& key) {
    Entries let_go;
    if (const auto found = by_key_.find(key); found != by_key_.end()) Move(found->second, let_go);
    return let_go;
  }

  /// Removes every entry for which `goes(entry)` is true.
  template <typename Goes>
  Entries EraseIf(const Goes& goes) {
    Entries let_go;
    for (auto it = recent_.begin(); it != recent_.end();) {
      const auto at = it++;
      if (goes(*at)) Move(at, let_go);
    }
    return let_go;
  }

  std::size_t size() const { return recent_.size(); }
  /// The cost of all entries together.
  std::size_t cost() const { return cost_; }

 private:
  void Move(typename Entries::iterator at, Entries& let_go) {
    cost_ -= at->cost;
    by_key_.erase(at->key);
    let_go.splice(let_go.end(), recent_, at);
  }

  const std::size_t cost_max_, entries_min_;
  std::size_t cost_ = 0;
  Entries recent_;  ///< the most recently used first
  absl::flat_hash_map<Key, typename Entries::iterator> by_key_;
};

}  // namespace patchbay
