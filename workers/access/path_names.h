// Names in place of paths in text that travels: errors go through the scheduler and into its
// journal, and paths may name patients.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// Paths and what they are called: "slide 3", "dataset 0", "OUT". A value.
class PathNames {
 public:
  /// One file or store by its canonical path; what a text says below it (a chunk of a store) stays
  /// readable. The first name of a path holds. Relative paths are passed over.
  void AddImage(const std::string& path, const std::string& name);
  /// A folder that people named, and the target of its links: the names below it are theirs too and
  /// become "...".
  void AddFolder(const std::string& path, const std::string& name);
  /// The paths of a job's manifest as it was submitted: "dataset N" for `images`, "source N" for
  /// `sources`, "OUT" for `out`. What lies below a dataset or source is hidden with it.
  void AddManifest(const Json& manifest);

  /// `text` with names for paths, those of files before those of the folders they lie in.
  std::string Hide(std::string text) const;
  Status Hide(const Status& status) const;

 private:
  struct Row {
    std::string path, name;
    bool hides_rest = false;
  };
  void Add(std::string path, const std::string& name, bool hides_rest);

  std::vector<Row> rows_;
};

}  // namespace patchbay::workers
