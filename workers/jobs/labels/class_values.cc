#include "workers/jobs/labels/class_values.h"

#include <algorithm>
#include <string>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxListed = 10;

bool ListsIgnore(const plan::LabelClass& one) {
  return std::any_of(one.from.begin(), one.from.end(), [](const auto& of_site) {
    return std::find(of_site.second.begin(), of_site.second.end(), plan::kIgnoreClass) !=
           of_site.second.end();
  });
}

/// States the values of a mask explicitly where the table leaves them to the values of its classes,
/// which are about to change.
void StateFrom(plan::ClassTable& table) {
  const bool has_from = std::any_of(table.classes.begin(), table.classes.end(),
                                    [](const auto& one) { return !one.from.empty(); });
  const bool is_listed = std::any_of(table.classes.begin(), table.classes.end(), ListsIgnore);
  for (plan::LabelClass& one : table.classes) {
    if (!has_from || (one.value == plan::kIgnoreClass && !is_listed)) {
      one.from[""].push_back(one.value);
    }
  }
}

}  // namespace

std::uint8_t UncoveredClass(const plan::ClassTable& table) {
  const plan::LabelClass* background = table.exhaustive ? table.Find(table.background) : nullptr;
  return static_cast<std::uint8_t>(background != nullptr ? background->value : plan::kIgnoreClass);
}

IgnoredClasses::IgnoredClasses(const plan::ClassTable& table) : table_(table) {
  std::array<bool, 256> taken{};
  for (const plan::LabelClass& one : table.classes) {
    taken[static_cast<std::size_t>(one.value)] = true;
    is_ignored_.push_back(one.value == plan::kIgnoreClass);
  }
  any_ = taken[plan::kIgnoreClass];
  if (!any_) return;
  StateFrom(table_);
  // At most kMaxClasses classes: there is a value for each.
  std::size_t next = 0;
  for (std::size_t i = 0; i < table_.classes.size(); ++i) {
    if (!is_ignored_[i]) continue;
    while (taken[next]) ++next;
    taken[next] = stands_in_[next] = true;
    table_.classes[i].value = static_cast<int>(next);
  }
}

void IgnoredClasses::Resolve(std::span<std::uint8_t> values) {
  if (!any_) return;
  for (std::uint8_t& value : values) value = Resolve(value, 1);
}

std::uint8_t IgnoredClasses::Resolve(std::uint8_t value, std::uint64_t count) {
  if (!stands_in_[value]) return value;
  counts_[value] += count;
  return static_cast<std::uint8_t>(plan::kIgnoreClass);
}

std::optional<std::uint64_t> IgnoredClasses::CountOf(std::size_t index) const {
  if (!is_ignored_[index]) return std::nullopt;
  return counts_[static_cast<std::size_t>(table_.classes[index].value)];
}

Status CheckMaskValues(const std::array<std::uint64_t, 256>& seen,
                       const std::vector<std::optional<int>>& known, std::string_view units) {
  std::string unknown;
  std::size_t count = 0;
  for (std::size_t v = 0; v < seen.size(); ++v) {
    if (seen[v] == 0 || known[v]) continue;
    if (++count > kMaxListed) continue;
    unknown += StrCat(count == 1 ? "" : ", ", v, " (", seen[v], " ", units, ")");
  }
  if (count == 0) return absl::OkStatus();
  if (count > kMaxListed) {
    unknown += StrCat(" and ", count - kMaxListed,
                      " more; a map of probabilities is made a mask first: one value a class");
  }
  const bool has_ignore = seen[plan::kIgnoreClass] > 0 && !known[plan::kIgnoreClass];
  return InvalidArgument(
      "import labels: mask: values that the class table does not have: ", unknown,
      has_ignore
          ? "; 255 may be a class (`from: 255`), or, in a class of value 255, what is ignored"
          : "");
}

}  // namespace patchbay::workers
