// A folder of results of `patchbay map` (configs/map.md), as far as its class maps need it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::results {

inline constexpr char kMapFile[] = "results.json", kMapImageFile[] = "image.json";
/// A map and its class map in an image's folder: the output's name and these.
inline constexpr char kMapEnding[] = ".ome.zarr", kClassMapEnding[] = ".classes.ome.zarr";

/// An output as the config declared it.
struct MapOutput {
  std::string kind = {};
  std::vector<std::string> classes = {};
  Json class_map = {};  ///< "argmax", or a list of thresholds; null without a class map

  /// Value 0 of the class map is none of the classes.
  bool HasNone() const { return class_map.is_array(); }
  static constexpr auto Fields() {
    using T = MapOutput;
    return AsObject(Field("kind", &T::kind), Field("classes", &T::classes),
                    Field("class_map", &T::class_map));
  }
};

struct MapResults {
  std::string name = {};  ///< SHA-256 over weights, function, outputs and plan, in hex
  std::map<std::string, MapOutput> outputs = {};

  /// InvalidArgument for names that `map` does not give; those of outputs are parts of paths.
  Status Check() const;
  static constexpr auto Fields() {
    return AsFullObject(Field("name", &MapResults::name), Field("outputs", &MapResults::outputs));
  }
};
/// NotFound for a folder without results.json; InvalidArgument for a malformed one, and for a link.
StatusOr<MapResults> ReadMapResults(const Folders& allowed, const std::string& folder);

/// The image that an image's folder has results of.
struct MapImage {
  std::string path = {};                         ///< absolute
  std::optional<std::string> pixel_digest = {};  ///< its store's; none of another file

  static constexpr auto Fields() {
    return AsFullObject(Field("path", &MapImage::path),
                        Field("pixel_digest", &MapImage::pixel_digest));
  }
};
/// The same; `folder` is no link either.
StatusOr<MapImage> ReadMapImage(const Folders& allowed, const std::string& folder);

/// The output with a class map that is called `wanted`, or the only one where `wanted` is "".
/// InvalidArgument names those that there are, and an output with more classes than a set has.
StatusOr<std::string> OutputWithClasses(const MapResults& results, const std::string& wanted);

/// The class table of an output's class map (plan::ClassTable as JSON). Other names than a table
/// has are aliases: "Gleason 3" of gleason_3; a class without a letter of theirs, or with another's
/// name then, is class_VALUE. With thresholds, or a class `background`, the table is exhaustive,
/// and pixels that no patch covered are a class of their own, not_covered, of value 255.
Json ClassTableOf(const MapOutput& output);

}  // namespace patchbay::results
