// The answers of commands that must not be carried out twice, for the peer that asks again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>

namespace patchbay::protocol {
struct Body;
}

namespace patchbay::scheduler {

/// True for commands whose second execution would not be the same as one: their answers are kept.
/// Every other command may be repeated as it is.
bool MustNotRepeat(const protocol::Body& body);

/// Bounded: the oldest answers are dropped first. A command is repeated within seconds or never.
class ReplyCache {
 public:
  static constexpr std::size_t kAnswersMax = 4096;

  struct Name {
    std::string key_name;
    std::uint64_t sender_incarnation = 0;
    std::uint64_t request_id = 0;
    auto operator<=>(const Name&) const = default;
  };

  /// The encoded answer, or nullptr. Valid until the next Keep.
  const std::string* Find(const Name& name) const {
    const auto it = answers_.find(name);
    return it == answers_.end() ? nullptr : &it->second;
  }

  void Keep(Name name, std::string answer) {
    if (!answers_.emplace(name, std::move(answer)).second) return;
    order_.push_back(std::move(name));
    if (order_.size() <= kAnswersMax) return;
    answers_.erase(order_.front());
    order_.pop_front();
  }

 private:
  std::map<Name, std::string> answers_;
  std::deque<Name> order_;
};

}  // namespace patchbay::scheduler
