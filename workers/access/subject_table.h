// Subjects by path. An error of a worker passes through the scheduler into its journal, and paths
// may name patients, so errors are sent with numbers instead.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// Paths, and the subjects that they are. A value.
class SubjectTable {
 public:
  /// Adds one file or store; names below it belong to the format and are kept in texts. The first
  /// subject of a path is used. Relative paths are ignored.
  void Add(const std::string& path, const Subject& subject);
  /// A folder that people named, and the target of its links: names below it are theirs too and
  /// become "...".
  void AddFolder(const std::string& path, const Subject& subject);
  /// The paths of a job's manifest as it was submitted (JobManifest; StreamManifest's `images`):
  /// stores for `images`, files for `sources`, both for `label_rows`, the run for `out`.
  void AddManifest(const Json& manifest);

  /// The path of a subject, for an error that does not travel; "" where it is in no row.
  std::string PathOf(const Subject& subject) const;

  /// A failed status in a form that may be sent: subjects by number. An unknown path becomes "a
  /// file", unless it is one of the system. Texts stay as they are: no error has a path there.
  Status Settle(const Status& status) const;

 private:
  struct Row {
    std::string path;
    Subject subject;
    bool hides_rest = false;
  };
  void Add(std::string path, const Subject& subject, bool hides_rest);
  Subject SubjectOf(const Row& row, std::string_view rest) const;
  Subject Settled(const Subject& subject) const;

  std::vector<Row> rows_;
};

/// The text of an error without its subject, for a reader who knows it, and without paths.
std::string TextWithoutSubject(const Status& status);

}  // namespace patchbay::workers
