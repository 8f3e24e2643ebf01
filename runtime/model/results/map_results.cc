#include "runtime/model/results/map_results.h"

#include <algorithm>
#include <cctype>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::results {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr char kDoing[] = "read results";
constexpr char kBackground[] = "background", kNone[] = "none", kNotCovered[] = "not_covered";
constexpr int kNotCoveredValue = 255;
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMostBesideNone =
    253;  ///< classes of a label set beside none and not_covered

Status CheckNoLink(const Folders& allowed, const std::string& path) {
  const auto found = StatOf(allowed, path, false);
  if (!found.ok() || !S_ISLNK(found->st_mode)) return absl::OkStatus();
  return ErrorAbout(absl::StatusCode::kInvalidArgument, kDoing, path,
                    "a link: `patchbay map` makes none");
}

template <typename T>
StatusOr<T> ReadDocument(const Folders& allowed, const std::string& folder, const char* name) {
  const std::string path = StrCat(folder, "/", name);
  PB_RETURN_IF_ERROR(CheckNoLink(allowed, path));
  const StatusOr<std::string> text = ReadFile(allowed, path, kMaxBytes);
  if (absl::IsNotFound(text.status())) {
    return WithAdvice(
        ErrorAbout(absl::StatusCode::kNotFound, kDoing, folder, StrCat("it has no ", name)),
        "name a store, a folder of results of `patchbay map`, or an image's folder in one");
  }
  if (!text.ok()) return text.status();
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(*text, path));
  return FromJson<T>(json, path, UnknownKeys::kSkipped);
}

bool IsOutputName(std::string_view name) {
  const auto is_kept = [](unsigned char c) {
    return c == '_' || (c < 128 && std::isalnum(c) != 0);
  };
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), is_kept);
}

/// A name as class tables have it.
std::string PlainName(const std::string& name) {
  std::string plain;
  for (const unsigned char c : name) {
    const bool is_kept = c < 128 && (std::isalnum(c) != 0 || c == '_' || c == '-');
    plain += is_kept ? static_cast<char>(std::tolower(c)) : '_';
  }
  return plain;
}

/// A class under its plain name; after its value where that is one of `others` or has no letter.
Json ClassOf(const std::string& name, int value, const Json& others) {
  const std::string plain = PlainName(name);
  const auto has_it = [&plain](const Json& one) { return one["name"] == plain; };
  const bool is_free = plain.find_first_not_of('_') != std::string::npos &&
                       std::none_of(others.begin(), others.end(), has_it);
  Json one = {{"name", is_free ? plain : StrCat("class_", value)}, {"value", value}};
  const bool is_same = std::equal(name.begin(), name.end(), plain.begin(), plain.end(),
                                  [](unsigned char a, char b) { return std::tolower(a) == b; });
  if (!is_same) one["aliases"] = {name};
  return one;
}

}  // namespace

Status MapResults::Check() const {
  if (name.size() > kMaxNameBytes) return InvalidArgument("name: expected a digest");
  for (const auto& [output, declared] : outputs) {
    if (IsOutputName(output)) continue;
    return InvalidArgument("outputs: expected names of letters, digits and underscores");
  }
  return absl::OkStatus();
}

StatusOr<MapResults> ReadMapResults(const Folders& allowed, const std::string& folder) {
  return ReadDocument<MapResults>(allowed, folder, kMapFile);
}

StatusOr<MapImage> ReadMapImage(const Folders& allowed, const std::string& folder) {
  PB_RETURN_IF_ERROR(CheckNoLink(allowed, folder));
  return ReadDocument<MapImage>(allowed, folder, kMapImageFile);
}

StatusOr<std::string> OutputWithClasses(const MapResults& results, const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& [name, output] : results.outputs) {
    if (output.kind == "map" && !output.class_map.is_null()) names.push_back(name);
  }
  if (names.empty()) {
    return InvalidArgument(
        kDoing, ": no output has a class map: declare class_map for a map, and run map again");
  }
  const bool is_only = wanted.empty() && names.size() == 1;
  if (is_only || std::find(names.begin(), names.end(), wanted) != names.end()) {
    const std::string& name = is_only ? names[0] : wanted;
    const MapOutput& output = results.outputs.at(name);
    if (!output.HasNone() || output.classes.size() <= kMostBesideNone) return name;
    return InvalidArgument(kDoing, ": outputs.", name, ": ", output.classes.size(),
                           " classes with thresholds: a label set has at most ", kMostBesideNone,
                           ", for 0 is none of them and 255 not covered");
  }
  return InvalidArgument(
      kDoing, ": --output",
      wanted.empty() ? "" : StrCat(" ", wanted, ": no output with a class map has this name"),
      ": name one of ", StrJoin(names, ", "));
}

Json ClassTableOf(const MapOutput& output) {
  Json classes = Json::array();
  if (output.HasNone()) classes.push_back(ClassOf(kNone, 0, classes));
  for (const std::string& name : output.classes) {
    classes.push_back(ClassOf(name, static_cast<int>(classes.size()), classes));
  }
  const auto is_background = [](const Json& one) { return one["name"] == kBackground; };
  const bool has_background = std::any_of(classes.begin(), classes.end(), is_background);
  if (!output.HasNone() && !has_background) return {{"classes", classes}};
  classes.push_back(ClassOf(kNotCovered, kNotCoveredValue, classes));
  return {{"classes", classes},
          {"exhaustive", true},
          {"background", output.HasNone() ? kNone : kBackground}};
}

}  // namespace patchbay::results
