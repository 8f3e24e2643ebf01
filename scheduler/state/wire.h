// The journal's own encoding: little-endian base-128 integers and length-prefixed strings. Reading
// never trusts a length: a damaged record ends as an error, not as a crash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/ids.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::scheduler {

/// Appends values to a string it owns.
class WireWriter {
 public:
  void U64(std::uint64_t value) {
    while (value >= 0x80) {
      out_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out_.push_back(static_cast<char>(value));
  }
  /// Small negative numbers stay short.
  void I64(std::int64_t value) {
    U64((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void Text(std::string_view text) {
    U64(text.size());
    out_.append(text);
  }
  void Subject(const patchbay::Subject& subject);
  void Texts(const std::vector<std::string>& texts) {
    U64(texts.size());
    for (const std::string& text : texts) Text(text);
  }
  void Task(const TaskId& task) {
    U64(task.job);
    U64(task.index);
  }
  void Lease(const LeaseNumber& lease) {
    U64(lease.incarnation);
    U64(lease.counter);
  }
  void Outcome(const patchbay::Outcome& outcome);
  void Spec(const protocol::TaskSpec& spec);
  void Cost(const protocol::WorkCost& cost);

  void Reserve(std::size_t bytes) { out_.reserve(bytes); }
  std::string Take() { return std::move(out_); }
  std::size_t size() const { return out_.size(); }

 private:
  std::string out_;
};

/// Reads the output of WireWriter. After the first mismatch ok() is false and every read returns
/// zero or empty.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t U64();
  std::uint32_t U32();  ///< fails beyond 32 bits
  std::int64_t I64();
  std::string Text();
  patchbay::Subject Subject();
  std::vector<std::string> Texts();
  TaskId Task();
  LeaseNumber Lease();
  /// A record or snapshot of version 2 or less has the text alone.
  patchbay::Outcome Outcome(std::uint64_t version);
  protocol::TaskSpec Spec();
  protocol::WorkCost Cost();
  /// A count of elements of at least one byte each: never more than the remaining bytes.
  std::size_t Count();

  bool ok() const { return ok_; }
  /// Everything was read and nothing is left.
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace patchbay::scheduler
