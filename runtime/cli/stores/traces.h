// Traces of sources on disk: all that jobs and commands left which derives from one, by the facts
// that tie it to others. The folders are as hostile as any input: links are not followed, and no
// name that stands in a file is opened for its content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/folders.h"

namespace patchbay::cli {

/// Facts such as "path:/archive/a.svs", "hex:<digest>", "patient:<pseudonym>", "slide:<slide_id>".
using TraceKeys = std::set<std::string>;

/// The folder of an absolute path.
inline std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// In the order in which they are removed.
enum class TraceKind : std::uint8_t {
  kRow,          ///< in a table that a job or command wrote
  kResult,       ///< a file, or a folder with all it holds
  kStore,        ///< with its label sets
  kManifestRow,  ///< has the source of a store
  kTableRow,     ///< in a table of slides: has the patient
  kLock          ///< a run's: only named
};

struct Trace {
  TraceKind kind = TraceKind::kResult;
  std::string what;  ///< "store", "row"
  std::string path;
  TraceKeys keys;      ///< each one ties it to a source
  TraceKeys more;      ///< tie others to it, not it to others: two patients' pixels may be equal
  bool joins = false;  ///< it is of one source: the other keys are that source's too
  int line = 0;        ///< a row's, from 1
  TraceKeys patients = {};  ///< the part of `keys` that names a patient
};

/// A row of a table, and the keys of its cells. No keys: the row says nothing of a source.
struct KeyedRow {
  int line = 0, end = 0;  ///< first line, and the line behind the last; from 1
  TraceKeys keys, more;   ///< as those of a Trace
};

inline constexpr char kForgottenFolder[] = ".patchbay-forget";  ///< holds what is being removed
inline constexpr char kLeftoverKey[] = "leftover";              ///< the key of such a folder

class TraceFinder {
 public:
  /// `pseudonym_key`: hex.
  TraceFinder(Folders allowed, std::string pseudonym_key)
      : allowed_(std::move(allowed)), pseudonym_key_(std::move(pseudonym_key)) {}

  /// Adds what is in a folder, at any depth.
  Status Find(const std::string& folder);
  /// The record of a submitted job over these files and stores.
  void AddJobRecord(const std::string& path, const std::vector<std::string>& sources);

  /// 16 hex digits of an HMAC.
  std::string Pseudonym(std::string_view kind, const std::string& id) const;
  /// The keys of a patient, by the identifier or its pseudonym.
  TraceKeys KeysOfPatient(const std::string& id) const;
  /// The key of a path, absolute or relative to the current folder.
  std::string KeyOfPath(const std::string& path) const;
  /// The rows of a table of slides, or of one that a job wrote; empty for other tables.
  std::vector<KeyedRow> RowsOf(const std::string& path, std::string_view text) const;

  std::vector<Trace> traces;
  std::size_t links = 0, tables = 0;  ///< links that were not followed; tables that were read

 private:
  StatusOr<bool> Visit(const FolderEntry& entry);
  Trace& Add(TraceKind kind, const char* what, const std::string& path, TraceKeys keys,
             bool joins = true);
  bool AddLeftover(const std::string& path);
  void AddStore(const std::string& path);
  void AddStaging(const std::string& root);
  void AddSlideStaging(const std::string& root, const std::string& job,
                       const std::vector<std::string>& sources);
  void AddResults(const std::string& folder);
  void AddImageResult(const std::string& folder, const std::string& name);
  void AddSpectra(const std::string& path);
  void AddTable(const std::string& path);
  void AddLock(const std::string& path);
  void AddSheet(const std::string& path, std::uint64_t bytes);

  const Folders allowed_;
  const std::string pseudonym_key_;
};

/// Adds the keys of all that is tied to `keys`, over any number of traces; with `by_patient` also
/// over other sources of the same patient. Returns the indices of tied traces.
std::vector<std::size_t> TieTraces(const std::vector<Trace>& traces, bool by_patient,
                                   TraceKeys& keys);
/// Whether a key of the trace is among `keys`; a series also where its folder is.
bool IsTied(const TraceKeys& own, const TraceKeys& keys);

}  // namespace patchbay::cli
