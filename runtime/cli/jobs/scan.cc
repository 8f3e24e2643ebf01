// patchbay scan SOURCE... --out cohort.csv: a table of images, to be completed by hand.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <utility>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/nnunet_dataset.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/worker_run.h"
#include "runtime/client/paths.h"
#include "runtime/core/counted.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/local_job_options.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/results/scan_rows.h"
#include "runtime/model/source/series_path.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

using results::ScanRow;

constexpr std::size_t kMaxPatternBytes = 1'000;

/// The parts of a path that a pattern matches: its first group, or the whole match, and its second
/// group.
struct Ids {
  std::string patient, case_id;
};

/// A path below the table's folder is relative to it, so that both can be moved together.
std::string PathFor(const std::string& path, const std::string& folder) {
  return path.starts_with(folder) ? path.substr(folder.size()) : path;
}

template <typename T>
std::string CellOf(const std::optional<T>& number) {
  return number ? DumpJson(*number) : "";
}

/// "hamamatsu" of "openslide:hamamatsu"; formats that are no scanner's have none.
std::string ScannerOf(const std::string& kind) {
  const std::size_t colon = kind.find(':');
  if (colon != std::string::npos) return kind.substr(colon + 1);
  for (const char* format : {"zarr", "tiff", "dicom", "nifti", "nrrd", "mha"}) {
    if (kind == format) return "";
  }
  return kind;
}

/// The stem; of one series of a folder the folder's name and the first digits of the series.
std::string ShortIdOf(const std::string& path) {
  constexpr std::size_t kDigits = 8;
  const SeriesPath named = SplitSeriesPath(path);
  if (named.series.empty()) return plan::StemOf(path);
  const std::string folder = named.path.substr(named.path.rfind('/') + 1);
  return StrCat(folder, folder.empty() ? "" : "-", named.series.substr(0, kDigits));
}

/// Short ids, and where two are alike the paths they lie under too.
std::vector<std::string> SlideIds(const std::vector<std::string>& paths) {
  std::map<std::string, int> seen;
  for (const std::string& path : paths) ++seen[ShortIdOf(path)];
  std::vector<std::string> ids;
  for (const std::string& path : paths) {
    std::string id = ShortIdOf(path);
    if (seen[id] > 1) {
      id = path;
      for (char& c : id) c = c == '/' ? '_' : c;
    }
    ids.push_back(std::move(id));
  }
  return ids;
}

/// Columns of every table, and the additional ones of a table with series: facts from headers, and
/// three for the user to fill in.
constexpr const char* kColumns[] = {"path",         "slide_id",        "case_id",      "patient_id",
                                    "mpp",          "scanner",         "width",        "height",
                                    "source_bytes", "estimated_bytes", "content_hash", "verdict"};
constexpr const char* kSeriesColumns[] = {
    "study",       "slices",   "thickness_mm", "step_mm", "pixel_mm", "kernel", "contrast",
    "orientation", "modality", "reason",       "repair",  "phase",    "use"};

/// Whether the row is of an unreadable image; a series that is no volume is readable.
bool IsBad(const ScanRow& row) { return !row.is_series && !row.IsMask() && row.verdict != "ok"; }

class ScanCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return WithOptions(
        {{"SOURCE", "", "slides, stores, CT, folders of them; or one nnU-Net or MSD dataset",
          &sources_, true},
         {"--out", "TABLE.csv", "the table to write; must not exist", &out_, true},
         {"--id-pattern", "REGEX",
          "first group (or match) in each path is patient_id, its second case_id", &pattern_}},
        options_);
  }
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  std::string Table(const std::vector<ScanRow>& images, const std::string& folder);
  StatusOr<ExitCode> ScanDataset(Session& session, const std::string& path,
                                 const std::string& out) const;
  StatusOr<ContentHashes> HashesOf(Session& session, const NnunetDataset& dataset) const;
  StatusOr<results::ScanRows> Scan(Session& session, JobManifest manifest) const;
  Ids IdsIn(const std::string& path) const;
  Status CheckArguments();

  std::vector<std::string> sources_;
  std::string out_, pattern_;
  std::optional<std::regex> regex_;
  ScanOptions options_;
  std::uint64_t bad_ = 0, without_id_ = 0, series_ = 0, other_series_ = 0, masks_ = 0;
};

Status ScanCommand::CheckArguments() {
  if (!plan::NamesTable(out_)) return UsageError(StrCat("--out ", out_, ": not a .csv file"));
  if (IsThere(out_)) {
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "scan", out_,
                      "the file exists, and may hold columns of yours; name another file");
  }
  if (pattern_.empty()) return absl::OkStatus();
  if (pattern_.size() > kMaxPatternBytes) return UsageError("--id-pattern: too long");
  try {
    regex_.emplace(pattern_, std::regex::ECMAScript);
  } catch (const std::regex_error& fault) {
    return UsageError(StrCat("--id-pattern '", pattern_, "': ", fault.what()));
  }
  return absl::OkStatus();
}

Ids ScanCommand::IdsIn(const std::string& path) const {
  std::smatch match;
  if (!regex_ || !std::regex_search(path, match, *regex_)) return {};
  return {match.size() > 1 ? match[1].str() : match[0].str(),
          match.size() > 2 ? match[2].str() : ""};
}

StatusOr<results::ScanRows> ScanCommand::Scan(Session& session, JobManifest manifest) const {
  PB_ASSIGN_OR_RETURN(manifest.pseudonym_key, PseudonymKey(session.environment));
  PB_ASSIGN_OR_RETURN(const Json result,
                      RunWorkerOp("scan", PayloadOf(options_), JsonOf(manifest)));
  return FromJson<results::ScanRows>(result, "scan");
}

std::string ScanCommand::Table(const std::vector<ScanRow>& images, const std::string& folder) {
  std::vector<std::string> paths;
  for (const ScanRow& row : images) paths.push_back(PathFor(row.path, folder));
  const std::vector<std::string> ids = SlideIds(paths);
  const bool has_series = std::any_of(images.begin(), images.end(), [](const ScanRow& row) {
    return row.is_series || row.IsMask();
  });
  std::vector<std::string> columns(std::begin(kColumns), std::end(kColumns));
  if (has_series)
    columns.insert(columns.end(), std::begin(kSeriesColumns), std::end(kSeriesColumns));
  std::string text = CsvRow(columns);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const ScanRow& row = images[i];
    const Ids found = IdsIn(paths[i]);
    without_id_ += regex_ && found.patient.empty() ? 1 : 0;
    bad_ += IsBad(row) ? 1 : 0;
    masks_ += row.IsMask() ? 1 : 0;
    const bool is_series = row.is_series && !row.IsMask();
    series_ += is_series ? 1 : 0;
    other_series_ += is_series && row.verdict != "uniform" ? 1 : 0;
    const bool found_patient = regex_ && !found.patient.empty();
    std::vector<std::string> cells = {paths[i],
                                      ids[i],
                                      found.case_id,
                                      found_patient ? found.patient : row.patient,
                                      CellOf(row.mpp),
                                      ScannerOf(row.kind),
                                      CellOf(row.width),
                                      CellOf(row.height),
                                      CellOf(row.source_bytes),
                                      CellOf(row.estimated_bytes),
                                      row.content_hash,
                                      row.verdict};
    if (has_series) {
      cells.insert(cells.end(),
                   {row.study, CellOf(row.slices), CellOf(row.thickness_mm), CellOf(row.step_mm),
                    CellOf(row.pixel_mm), row.kernel, row.contrast, row.orientation, row.modality,
                    row.reason, "", "", row.use});
    }
    for (std::string& cell : cells) cell = CsvField(cell);
    text += CsvRow(cells);
  }
  return text;
}

/// The content hash of every image, when hashes are asked for.
StatusOr<ContentHashes> ScanCommand::HashesOf(Session& session,
                                              const NnunetDataset& dataset) const {
  ContentHashes hashes;
  if (!options_.hash) return hashes;
  JobManifest manifest;
  std::vector<std::string> images;
  for (const NnunetCase& one : dataset.cases) {
    images.insert(images.end(), one.images.begin(), one.images.end());
  }
  for (const std::string& image : images) {
    manifest.images.push_back(StrCat(dataset.folder, "/", image));
  }
  PB_ASSIGN_OR_RETURN(const results::ScanRows rows, Scan(session, std::move(manifest)));
  // The rows have the paths that were read: links on the way to the dataset are resolved.
  std::error_code error;
  const std::string folder = std::filesystem::weakly_canonical(dataset.folder, error).string();
  ContentHashes found;
  for (const ScanRow& row : rows.images) found[row.path] = row.content_hash;
  for (const std::string& image : images) {
    std::string& hash = hashes[image];
    for (const std::string& above : {dataset.folder, folder}) {
      if (hash.empty()) hash = found[StrCat(above, "/", image)];
    }
    if (hash.empty()) return DataLoss("scan: ", image, ": it cannot be read");
  }
  return hashes;
}

/// Writes the table and, next to it, the class table.
StatusOr<ExitCode> ScanCommand::ScanDataset(Session& session, const std::string& path,
                                            const std::string& out) const {
  if (regex_) return UsageError("--id-pattern is not for a dataset.json");
  PB_ASSIGN_OR_RETURN(const NnunetDataset dataset, ReadNnunetDataset(path));
  PB_ASSIGN_OR_RETURN(const std::string classes, ClassTableOf(dataset));
  const std::string classes_file = out.substr(0, out.rfind('.')) + ".classes.yaml";
  if (IsThere(classes_file)) return AlreadyExists("scan: ", classes_file, ": the file exists");
  PB_ASSIGN_OR_RETURN(const ContentHashes hashes, HashesOf(session, dataset));
  const std::string table = CohortTableOf(dataset, out.substr(0, out.rfind('/') + 1), hashes);
  PB_RETURN_IF_ERROR(WriteFileDurably(Folders::OfThisUser(), classes_file, AsBytes(classes), 0644));
  // Its paths may name patients.
  PB_RETURN_IF_ERROR(WriteFileDurably(Folders::OfThisUser(), out, AsBytes(table), 0600));
  std::size_t rows = 0;
  for (const NnunetCase& one : dataset.cases) rows += one.images.size();
  session.terminal.Say(StrCat(out_, ": ", Counted(rows, "row"), ", ",
                              Counted(dataset.folds.size(), "fold"), "; classes in ",
                              classes_file));
  session.terminal.Result(
      {{"table", out}, {"rows", rows}, {"folds", dataset.folds.size()}, {"classes", classes_file}});
  return ExitCode::kDone;
}

StatusOr<ExitCode> ScanCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_RETURN_IF_ERROR(CheckArguments());
  JobManifest manifest;
  for (const std::string& source : sources_) {
    PB_ASSIGN_OR_RETURN(manifest.images.emplace_back(), client::AbsolutePath(source));
  }
  PB_ASSIGN_OR_RETURN(const std::string out, client::AbsolutePath(out_));
  PB_RETURN_IF_ERROR(CheckOutsideStores("scan", out, out_));
  for (const std::string& path : manifest.images) {
    if (!NamesNnunetDataset(path)) continue;
    if (sources_.size() == 1) return ScanDataset(session, path, out);
    return UsageError(StrCat(path, ": a dataset.json is scanned alone"));
  }
  PB_ASSIGN_OR_RETURN(const results::ScanRows scanned, Scan(session, std::move(manifest)));
  const std::string text = Table(scanned.images, out.substr(0, out.rfind('/') + 1));
  // Its paths may name patients.
  PB_RETURN_IF_ERROR(WriteFileDurably(Folders::OfThisUser(), out, AsBytes(text), 0600));
  Terminal& terminal = session.terminal;
  terminal.Say(StrCat(out_, ": ", Counted(scanned.images.size(), "row"),
                      bad_ == 0 ? ""
                                : StrCat(", ", Counted(bad_, "of an image", "of images"),
                                         " that cannot be read (column verdict)")));
  if (series_ != 0) {
    terminal.Say(StrCat(series_, " series, ", other_series_,
                        " not uniform (columns verdict and reason); phase and use are yours to "
                        "fill in"));
  }
  if (masks_ != 0) {
    terminal.Say(StrCat(Counted(masks_, "mask"), " beside images: `use` is 0 in their rows"));
  }
  PrintSkipped(terminal, scanned.skipped_files);
  if (without_id_ != 0) {
    terminal.Note(StrCat("the pattern does not match ", without_id_,
                         " of the paths: they have no patient_id"));
  }
  terminal.Result({{"table", out},
                   {"rows", scanned.images.size()},
                   {"unreadable", bad_},
                   {"series", series_},
                   {"not_uniform", other_series_},
                   {"masks", masks_},
                   {"skipped_files", scanned.skipped_files},
                   {"without_patient_id", without_id_}});
  return bad_ == 0 ? ExitCode::kDone : ExitCode::kSomeFailed;
}

}  // namespace

std::unique_ptr<Command> MakeScan() { return std::make_unique<ScanCommand>(); }

}  // namespace patchbay::cli
