// Command lines of programs that other programs start: "--name value" pairs, nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::workers {

/// The values of the flags that were given.
class Flags {
 public:
  /// InvalidArgument with the nearest name for an unknown flag, for one without a value or given
  /// twice, and for a word that is not a flag. `known` are names without the dashes.
  static StatusOr<Flags> Parse(const std::vector<std::string>& words,
                               const std::vector<std::string>& known);

  bool Has(const std::string& name) const { return values_.contains(name); }
  std::string Text(const std::string& name, const std::string& fallback) const;
  /// InvalidArgument when it is missing.
  StatusOr<std::string> Required(const std::string& name) const;
  /// InvalidArgument unless it is a whole number in [least, most].
  StatusOr<std::uint64_t> Number(const std::string& name, std::uint64_t fallback,
                                 std::uint64_t least, std::uint64_t most) const;

 private:
  std::map<std::string, std::string> values_;
};

/// The descriptor that a supervisor or agent passed as --ready-fd; -1 without one.
StatusOr<int> ReadyFd(const Flags& flags);

}  // namespace patchbay::workers
