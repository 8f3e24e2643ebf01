// The `labels` of a run config: the label sets that a stream reads, and the arrays of a batch that
// are made from them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/stream/batch_layout.h"

namespace patchbay::plan {

/// How a patch's one class follows from the labels of its pixels.
enum class LabelRule : std::uint8_t {
  kMajority,  ///< the commonest that is not ignored
  kAny,       ///< the first class of the table that occurs in the patch
  kCenter,    ///< the centre pixel's
};
std::string_view NameOf(LabelRule rule);

struct LabelsConfig {
  /// The set whose classes sampling and `label` go by; "": the stream reads no label images.
  std::string set = {};
  std::vector<std::string> further_sets = {};  ///< masks only: the arrays mask_1, mask_2, ...
  bool mask = false;
  std::optional<LabelRule> rule = std::nullopt;  ///< absent: no array `label`
  double min_fraction = 0;                       ///< share of the patch, 0 to 1
  std::vector<std::string> classes = {};         ///< under kAny; empty = all
  std::string column = {};  ///< table column, instead of a rule: its integers are the array `label`
  std::string positions_column = {};  ///< the same of the table of positions

  bool HasLabel() const { return rule || !column.empty() || !positions_column.empty(); }
  bool HasArrays() const { return mask || HasLabel(); }
  /// `set`, if there is one, and the further sets.
  std::vector<std::string> Sets() const;
  bool operator==(const LabelsConfig&) const = default;
};

inline constexpr std::size_t kMaxLabelSets = 8;
/// The arrays of a batch but `label` and five that describe a patch's origin.
inline constexpr std::size_t kMaxMasksAndImages = kMaxArrays - 6;

/// The array of the masks of a set: "mask", "mask_1", ...
std::string MaskArrayOf(std::size_t set);
/// The set whose masks the array holds; nullopt for any other array.
std::optional<std::size_t> SetOfMaskArray(std::string_view array);

/// The key `labels` of a run config.
config::Key LabelsKey();
/// `labels` passed the key table.
LabelsConfig LabelsConfigOf(const Json& labels);
/// The `labels` section of the config; null without labels.
Json ToJson(const LabelsConfig& labels);

/// Value and name of each class of a label set, in the table's order; ignored ones left out.
struct NamedValue {
  std::string name;
  int value = 0;
  bool operator==(const NamedValue&) const = default;
};
using LabelClasses = std::vector<NamedValue>;

/// Whether a class that `key` names is one of the set's. InvalidArgument names it and the nearest,
/// or all that there are.
Status CheckClass(std::string_view key, const std::string& name, const std::string& set,
                  const LabelClasses& classes);
/// Checks that a set of these classes fits the config. InvalidArgument names the key.
Status CheckLabels(const LabelsConfig& labels, const LabelClasses& classes);

/// The class of a patch whose labels were counted: `pixels` of each value, all of the patch.
/// kIgnoreClass where the rule finds none.
int ClassOfPatch(const LabelsConfig& labels, const LabelClasses& classes,
                 const std::array<std::uint32_t, 256>& pixels);

}  // namespace patchbay::plan
