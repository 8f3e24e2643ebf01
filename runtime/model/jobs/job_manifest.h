// Messages of jobs over files (ingest, spectra, labels, scan, synth, preview of images, inspect):
// the manifest that a command submits, and the records that a staged job's tasks share with it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/format/json/described.h"
#include "runtime/model/source/file_kind.h"
#include "runtime/os/pid_stamp.h"

namespace patchbay {

/// A store and its annotation file, absolute paths.
struct LabelRow {
  std::string store;
  std::string file = {};  ///< empty where tissue is looked for, or revisions are removed
  std::string site = {};  ///< site whose mask values apply; may be empty

  bool operator==(const LabelRow&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("store", &LabelRow::store).Required(), Field("file", &LabelRow::file),
                    Field("site", &LabelRow::site));
  }
};

/// A job names what it needs; the rest is empty.
struct JobManifest {
  std::vector<std::string> images = {};   ///< files, stores and folders to look at, or to prune
  std::vector<std::string> sources = {};  ///< sources of a staged job: files and folders
  std::map<std::string, std::string> modalities = {};  ///< by source: ParseModality's texts
  std::vector<LabelRow> label_rows = {};
  std::vector<std::string> kept = {};  ///< revisions of label sets that stay, by folder name
  std::string out = {};                ///< file or folder to write
  std::string lesions = {};            ///< file for the mask of `synth ct`
  std::string pseudonym_key = {};      ///< hex; "": results keep the names of files
  std::string series_key = {};         ///< hex; CT series of a folder are named under it
  std::uint64_t run = 0;               ///< another for every submitted job
  /// The command that the run ends with; absent: of a cluster.
  std::optional<PidStamp> command = {};

  static constexpr auto Fields() {
    using T = JobManifest;
    return AsObject(Field("images", &T::images), Field("sources", &T::sources),
                    Field("modalities", &T::modalities), Field("label_rows", &T::label_rows),
                    Field("kept", &T::kept), Field("out", &T::out), Field("lesions", &T::lesions),
                    Field("pseudonym_key", &T::pseudonym_key), Field("series_key", &T::series_key),
                    Field("run", &T::run), Field("command", &T::command));
  }
};

/// The result of a staged job's root task, "<job>.plan".
struct PlannedJob {
  std::string job_key = {};  ///< key that names the job's folder; "" of a job without one
  std::uint64_t sources = 0;
  std::uint32_t summary_task = 0;  ///< 0 without one
  /// Estimated need of an ingest, and bytes free at that time; 0: not known.
  std::uint64_t estimated_bytes = 0, free_bytes = 0;
  FilesByKind skipped_files = {};  ///< files in the folders that are no sources

  static constexpr auto Fields() {
    using T = PlannedJob;
    return AsObject(Field("job_key", &T::job_key), Field("sources", &T::sources),
                    Field("summary_task", &T::summary_task),
                    Field("estimated_bytes", &T::estimated_bytes),
                    Field("free_bytes", &T::free_bytes), Field("skipped_files", &T::skipped_files));
  }
};

/// The payload of a staged job's later tasks; a stage may have keys of its own beside it.
struct StagePayload {
  std::optional<std::string> job_key = {};
  std::int64_t slide = -1;  ///< number of the source; -1: of all

  static constexpr auto Fields() {
    return AsObject(Field("job_key", &StagePayload::job_key), Field("slide", &StagePayload::slide));
  }
};

/// The file that "<job>.plan" writes for the tasks after it.
struct StagedManifest {
  std::vector<std::string> sources;  ///< canonical paths, in the order of their numbers
  std::string pseudonym_key;         ///< hex; empty when the job names results after their files
  Json settings;                     ///< in the job's own words

  static constexpr auto Fields() {
    using T = StagedManifest;
    return AsFullObject(Field("sources", &T::sources), Field("pseudonym_key", &T::pseudonym_key),
                        Field("settings", &T::settings));
  }
};

}  // namespace patchbay
