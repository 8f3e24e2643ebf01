#include "runtime/model/source/repair.h"

#include <algorithm>
#include <vector>

#include "runtime/core/names.h"
#include "runtime/core/strings.h"

namespace patchbay {
namespace {

constexpr auto kRules =
    NamesInOrder<Repair>("frame-of-reference", "kernel", "copies", "localizer", "split", "rescale",
                         "secondary-capture", "monochrome1", "burned-in", "channel-grid");

}  // namespace

std::string_view NameOf(Repair rule) { return kRules.Of(rule); }

StatusOr<Repairs> ParseRepairs(std::string_view text) {
  Repairs rules;
  if (text.empty()) return rules;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    begin = end + 1;
    const auto rule = kRules.Find(name);
    if (!rule) {
      const std::vector<std::string> known(kRules.list.begin(), kRules.list.end());
      return InvalidArgument("'", name, "' is none of the rules ", StrJoin(known, ", "));
    }
    rules.insert(*rule);
  }
  return rules;
}

Repairs RepairsIn(const Json& transform_log) {
  Repairs rules;
  for (const Json& step : transform_log) {
    if (!step.is_object() || step.value("step", Json()) != "repair") continue;
    const Json name = step.value("rule", Json());
    const auto rule = kRules.Find(name.is_string() ? name.get_ref<const std::string&>() : "");
    if (rule) rules.insert(*rule);
  }
  return rules;
}

}  // namespace patchbay
