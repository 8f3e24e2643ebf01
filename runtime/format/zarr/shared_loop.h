// Work on the items of a list, shared by the thread that has the list and one that would wait for
// it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "runtime/core/status.h"

namespace patchbay::zarr {

/// Items are taken one at a time, in their order, by whichever thread is free: neither waits for
/// longer than one item takes.
class SharedLoop {
 public:
  /// The two threads that may work at once.
  enum Lane : std::size_t { kOwner, kHelper, kLanes };
  using Body = std::function<Status(std::size_t item, Lane lane)>;

  /// Does `items` of them, with the helper's hands where there are any. On an error or exception no
  /// further item is begun, and it is returned or thrown here, whichever thread met it. One call at
  /// a time.
  Status Run(std::size_t items, const Body& body);
  /// Works on the items of one Run after another, until End.
  void Help();
  /// Does one item, if one can be begun now.
  void HelpOnce();

  /// The first Run has items that are still being made: only the first `items` of them are begun
  /// until the next call.
  void Allow(std::size_t items);
  /// Items that could be begun now.
  std::size_t Waiting();
  /// Begins no item any more: Run returns Cancelled.
  void Cancel();
  /// No further Run will come: Help returns.
  void End();

  /// Ends the loop at the end of its own life.
  struct AtExit {
    SharedLoop& loop;
    ~AtExit() { loop.End(); }
  };

 private:
  bool CanBegin() const { return body_ != nullptr && next_ < std::min(items_, allowed_); }
  bool IsDone() const { return next_ >= items_ && busy_ == 0; }
  void TakeNext(std::unique_lock<std::mutex>& lock, Lane lane);

  std::mutex mu_;
  std::condition_variable changed_;
  const Body* body_ = nullptr;           // guarded by mu_; null between two runs
  std::size_t items_ = 0, next_ = 0;     // guarded by mu_
  std::size_t allowed_ = SIZE_MAX;       // guarded by mu_; items of the first run
  std::size_t busy_ = 0;                 // guarded by mu_; threads that are at an item
  Status status_;                        // guarded by mu_
  std::exception_ptr thrown_ = nullptr;  // guarded by mu_
  bool is_ended_ = false;                // guarded by mu_
  bool is_cancelled_ = false;            // guarded by mu_
};

}  // namespace patchbay::zarr
