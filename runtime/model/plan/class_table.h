// A class table: the classes of a set of annotations, their names in annotation files, and the
// class of a pixel under several of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::plan {

/// Pixels that no class covers.
inline constexpr int kIgnoreClass = 255;
/// Name of an annotation without a class.
inline constexpr std::string_view kUnclassified = "unclassified";
inline constexpr std::size_t kMaxClasses = 255;

struct LabelClass {
  std::string name;
  int value = 0;  ///< 0 to 254, or kIgnoreClass for pixels to ignore
  std::vector<std::string> aliases;
  /// Values of mask files that mean this class, by site; "" for every site.
  std::map<std::string, std::vector<int>> from;
  bool operator==(const LabelClass&) const = default;

  static constexpr auto Fields() {
    return AsObject(Field("name", &LabelClass::name).Required(),
                    Field("value", &LabelClass::value).Required().Within(0, kIgnoreClass),
                    Field("aliases", &LabelClass::aliases),
                    Field("from", &LabelClass::from).Within(0, kIgnoreClass));
  }
};

/// A class of this name is no foreground (sampling.foreground, ct_normalize), and no tissue.
inline constexpr std::string_view kBackgroundClass = "background";

struct ClassTable {
  std::vector<LabelClass> classes;  ///< in the order of painting: the last one lies on top
  bool exhaustive = false;          ///< pixels no annotation covers are background, not ignored
  std::string background;           ///< the class of such pixels; "" where there are none
  /// Annotations of these names outline the annotated region: within it, pixels without a class are
  /// background.
  std::vector<std::string> region_of_interest;
  std::vector<std::string> skip;  ///< annotations of these names are left out
  bool operator==(const ClassTable&) const = default;
  static constexpr auto Fields() {
    using T = ClassTable;
    return AsObject(Field("classes", &T::classes).Required(), Field("exhaustive", &T::exhaustive),
                    Field("background", &T::background),
                    Field("region_of_interest", &T::region_of_interest), Field("skip", &T::skip));
  }

  /// The class of that name, or nullptr.
  const LabelClass* Find(std::string_view name) const;
};

/// The meaning of an annotation's name. Case and surrounding blanks do not count.
enum class NameMeaning { kClass, kRegionOfInterest, kSkipped, kUnknown };
struct NamedClass {
  NameMeaning meaning = NameMeaning::kUnknown;
  std::size_t index = 0;  ///< index of a class in ClassTable::classes
};
NamedClass MeaningOf(const ClassTable& table, std::string_view name);
/// Every name that means something, for "did you mean".
std::vector<std::string> NamesOf(const ClassTable& table);

/// The class of each value of a mask file, for images of `site`. Where the table has no `from`, the
/// mask's values are the table's own; kIgnoreClass is ignored if a class has that value. nullopt:
/// not in the table. InvalidArgument for a site that the table does not name although it names
/// others.
StatusOr<std::vector<std::optional<int>>> MaskValues(const ClassTable& table,
                                                     std::string_view site);

/// InvalidArgument with file and line.
StatusOr<ClassTable> ParseClassTable(std::string_view text, std::string_view source);

/// InvalidArgument for what JsonOf does not give of a table that ParseClassTable takes.
StatusOr<ClassTable> ClassTableFromJson(const Json& value, std::string_view what);

}  // namespace patchbay::plan
