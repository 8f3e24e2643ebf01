#include "runtime/cli/stores/traces.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <initializer_list>
#include <span>

#include <fcntl.h>

#include "runtime/client/paths.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/csv/table_text.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/plan/run_lock.h"
#include "runtime/model/results/map_results.h"
#include "runtime/model/results/sheet_mark.h"
#include "runtime/model/results/spectra_document.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/model/source/pseudonym.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxFolderName = 100;  ///< characters of a slide in names of map's folders
constexpr char kSpectraFile[] = "spectra.json", kManifestFile[] = "manifest.csv";

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void AddHex(const Json& value, TraceKeys& keys) {
  if (value.is_string() && !value.get_ref<const std::string&>().empty()) {
    keys.insert("hex:" + value.get<std::string>());
  }
}

/// Whether a cell names an entry of the table's own folder.
bool IsPlainName(const std::string& cell) {
  return !cell.empty() && cell.find('/') == std::string::npos && cell != "." && cell != "..";
}

/// The name that `map` gives the folder of a slide, behind its number.
std::string FolderName(const std::string& slide) {
  std::string name;
  for (const char c : slide) {
    const bool is_kept = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         std::string_view("._-").find(c) != std::string_view::npos;
    if (is_kept) name += c;
    if (!is_kept && !name.ends_with('-')) name += '-';
  }
  return name.substr(0, kMaxFolderName);
}

/// The object in a file; null where there is none.
Json JsonAt(const Folders& allowed, const std::string& path) {
  const auto text = ReadFile(allowed, path, kMaxManifestBytes);
  auto json = text.ok() ? ParseJson(*text, path, kMaxManifestBytes) : text.status();
  return json.ok() && json->is_object() ? *std::move(json) : Json();
}

/// The cells of a row by the names of their columns.
class Cells {
 public:
  Cells(const std::vector<std::string>& columns, const std::vector<std::string>& fields)
      : columns_(columns), fields_(fields) {}

  std::string operator[](std::string_view name) const {
    const auto at = static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), name) -
                                             columns_.begin());
    return at < std::min(columns_.size(), fields_.size()) ? fields_[at] : "";
  }
  std::string First(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (std::string cell = (*this)[name]; !cell.empty()) return cell;
    }
    return "";
  }

 private:
  const std::vector<std::string>&columns_, &fields_;
};

/// The lines of a table, cells without surrounding spaces; none where it is no text.
std::vector<CsvLine> LinesOf(std::string_view text) {
  const auto opened = OpenTableText(text, "");
  if (!opened.ok()) return {};
  CsvLines lines = ParseCsvLines(opened->text, opened->separator);
  for (CsvLine& line : lines.rows) {
    line.line += opened->lines_before;
    for (std::string& cell : line.fields) cell = std::string(TrimmedCell(cell));
  }
  return std::move(lines.rows);
}

/// Whether `key` is of a series in a folder that is among `keys`.
bool IsSeriesAmong(const std::string& key, const TraceKeys& keys) {
  const std::size_t mark = key.starts_with("path:") ? key.rfind('#') : std::string::npos;
  return mark != std::string::npos && keys.contains(key.substr(0, mark));
}

/// Whether a path among `keys` lies below that of `own`, a folder or a source of many.
bool IsAround(const TraceKeys& own, const TraceKeys& keys) {
  return std::any_of(own.begin(), own.end(), [&](const std::string& key) {
    if (!key.starts_with("path:")) return false;
    for (const char* const mark : {"/", "#"}) {
      const auto below = keys.lower_bound(key + mark);
      if (below != keys.end() && below->starts_with(key + mark)) return true;
    }
    return false;
  });
}

}  // namespace

bool IsTied(const TraceKeys& own, const TraceKeys& keys) {
  return std::any_of(own.begin(), own.end(), [&](const std::string& key) {
    return keys.contains(key) || IsSeriesAmong(key, keys);
  });
}

std::vector<std::size_t> TieTraces(const std::vector<Trace>& traces, bool by_patient,
                                   TraceKeys& keys) {
  std::set<std::size_t> tied;
  const auto is_tied = [&](const Trace& trace) {
    return IsTied(trace.keys, keys) || (!trace.joins && IsAround(trace.keys, keys));
  };
  for (std::size_t before = SIZE_MAX; before != tied.size();) {
    before = tied.size();
    for (std::size_t i = 0; i < traces.size(); ++i) {
      if (tied.contains(i) || !is_tied(traces[i])) continue;
      tied.insert(i);
      if (!traces[i].joins) continue;
      keys.insert(traces[i].more.begin(), traces[i].more.end());
      for (const std::string& key : traces[i].keys) {
        // An id is unique within its table only. A result that `map` did not finish has no more
        // than that, and is made again where it was another's.
        const std::string name = key.substr(key.find(':') + 1);
        if (key.starts_with("path:")) keys.insert("named:" + FolderName(NameOf(name)));
        if (key.starts_with("slide:")) {
          keys.insert("named:" + FolderName(name));
        } else if (by_patient || !key.starts_with("patient:")) {
          keys.insert(key);
        }
      }
    }
  }
  return {tied.begin(), tied.end()};
}

Status TraceFinder::Find(const std::string& folder) {
  FolderEntry root{folder};
  PB_ASSIGN_OR_RETURN(root.st, StatOf(allowed_, folder, false));
  PB_ASSIGN_OR_RETURN(const bool goes_on, Visit(root));
  if (!goes_on) return absl::OkStatus();
  return WalkTree(allowed_, folder, Links::kKept,
                  [this](const FolderEntry& entry) { return Visit(entry); });
}

StatusOr<bool> TraceFinder::Visit(const FolderEntry& entry) {
  const std::string& path = entry.path;
  const std::string name = NameOf(path);
  if (S_ISLNK(entry.st.st_mode)) ++links;
  if (entry.is_folder()) {
    if (AddLeftover(path)) return false;
    if (name.starts_with(".patchbay-")) {
      AddStaging(path);
    } else if (zarr::IsStore(allowed_, path)) {
      AddStore(path);
    } else if (IsRegularFile(allowed_, StrCat(path, "/", results::kMapFile)) &&
               results::ReadMapResults(allowed_, path).ok()) {
      AddResults(path);
    } else {
      return true;
    }
    return false;
  }
  if (!entry.is_file()) return false;
  if (plan::NamesTable(name)) AddTable(path);
  if (name == kSpectraFile) AddSpectra(path);
  if (name.ends_with(".lock")) AddLock(path);
  if (name.ends_with(".png")) AddSheet(path, static_cast<std::uint64_t>(entry.st.st_size));
  return false;
}

bool TraceFinder::AddLeftover(const std::string& path) {
  if (NameOf(path) != kForgottenFolder) return false;
  Add(TraceKind::kResult, "left by a run that was killed", path, {kLeftoverKey}, false);
  return true;
}

Trace& TraceFinder::Add(TraceKind kind, const char* what, const std::string& path, TraceKeys keys,
                        bool joins) {
  Trace& trace = traces.emplace_back(Trace{kind, what, path, std::move(keys), {}, joins});
  for (const std::string& key : trace.keys) {
    if (joins && key.starts_with("patient:")) trace.patients.insert(key);
  }
  return trace;
}

void TraceFinder::AddJobRecord(const std::string& path, const std::vector<std::string>& sources) {
  TraceKeys keys;
  for (const std::string& source : sources) keys.insert(KeyOfPath(source));
  Add(TraceKind::kResult, "record of a job", path, std::move(keys), false);
}

std::string TraceFinder::Pseudonym(std::string_view kind, const std::string& id) const {
  return PseudonymOf(pseudonym_key_, kind, id);
}

TraceKeys TraceFinder::KeysOfPatient(const std::string& id) const {
  if (id.empty()) return {};
  TraceKeys keys = {"patient:" + Pseudonym("patient", id)};
  const bool is_pseudonym =
      id.size() == kSeriesDigits && id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_pseudonym) keys.insert("patient:" + id);
  return keys;
}

std::string TraceFinder::KeyOfPath(const std::string& path) const {
  // A series of a folder: by its UID where a job names it, by its pseudonym in tables.
  const std::size_t mark = path.rfind('#');
  if (mark == std::string::npos || Exists(Folders::OfThisUser(), path)) {
    return "path:" + client::AbsolutePath(path).value_or(path);
  }
  std::string series = path.substr(mark + 1);
  if (SplitSeriesPath(path).series.empty()) series = Pseudonym("series", series);
  return StrCat(KeyOfPath(path.substr(0, mark)), "#", series);
}

void TraceFinder::AddStore(const std::string& path) {
  const Json own = zarr::OwnAttributes(allowed_, path);
  if (!own.is_object() || own.empty()) return;  // another writer's
  TraceKeys keys = {KeyOfPath(path), "slide:" + plan::StemOf(path)};
  AddHex(own.value("source_sha256", Json()), keys);
  for (const Json& channel : own.value(kChannelsKey, Json::array())) {
    if (channel.is_object()) AddHex(channel.value("source_sha256", Json()), keys);
  }
  const Json identity = own.value("identity", Json());
  for (const char* kind : {"patient", "series"}) {
    const Json value = identity.is_object() ? identity.value(kind, Json()) : Json();
    for (const Json& one : value.is_array() ? value : Json::array({value})) {
      if (one.is_string()) keys.insert(StrCat(kind, ":", one.get<std::string>()));
    }
  }
  TraceKeys& more = Add(TraceKind::kStore, "store", path, std::move(keys)).more;
  for (const char* name : {"digest", "pixel_digest"}) AddHex(own.value(name, Json()), more);
}

void TraceFinder::AddStaging(const std::string& root) {
  const auto names = ListFolder(allowed_, root);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::string job = StrCat(root, "/", name);
    if (AddLeftover(job)) continue;
    const Json json = JsonAt(allowed_, job + "/manifest.json");
    const auto manifest = FromJson<StagedManifest>(json, "manifest");
    if (!manifest.ok()) continue;
    TraceKeys keys;
    for (const std::string& source : manifest->sources) keys.insert(KeyOfPath(source));
    Add(TraceKind::kResult, "state of a job", job, std::move(keys), false);
    AddSlideStaging(root, job, manifest->sources);
  }
}

/// A slide's staging folder stands beside its job's, under a key that the job recorded.
void TraceFinder::AddSlideStaging(const std::string& root, const std::string& job,
                                  const std::vector<std::string>& sources) {
  const auto names = ListFolder(allowed_, job + "/slides");
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const Json outcome = JsonAt(allowed_, StrCat(job, "/slides/", name));
    const Json key = outcome.is_object() ? outcome.value("slide_key", Json()) : Json();
    const std::string slide = plan::StemOf(name);  // "<run>.<number>"
    const std::size_t number = std::strtoull(slide.c_str() + slide.rfind('.') + 1, nullptr, 10);
    if (!key.is_string() || number >= sources.size()) continue;
    const std::string folder = StrCat(root, "/", NameOf(key.get<std::string>()));
    if (folder == root + "/" || !IsFolder(allowed_, folder, false)) continue;
    TraceKeys keys = {KeyOfPath(sources[number])};
    AddHex(outcome.value("source_sha256", Json()), keys);
    Add(TraceKind::kResult, "unfinished store", folder, std::move(keys));
  }
}

void TraceFinder::AddResults(const std::string& folder) {
  const auto names = ListFolder(allowed_, folder);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::string path = StrCat(folder, "/", name);
    if (plan::NamesTable(name) && IsRegularFile(allowed_, path)) AddTable(path);
    if (!IsFolder(allowed_, path, false) || AddLeftover(path)) continue;
    if (IsRegularFile(allowed_, path + "/score.json")) {
      Add(TraceKind::kResult, "score", path, {KeyOfPath(folder)}, false);
    } else if (name == "failed" || name == ".bands") {
      const auto slides = ListFolder(allowed_, path);
      for (const std::string& slide : slides.ok() ? *slides : std::vector<std::string>()) {
        if (AddLeftover(StrCat(path, "/", slide))) continue;
        Add(TraceKind::kResult, "unfinished result of map", StrCat(path, "/", slide),
            {"named:" + slide.substr(slide.find('-') + 1)}, false);
      }
    } else if (IsRegularFile(allowed_, StrCat(path, "/", results::kMapImageFile))) {
      AddImageResult(folder, name);
    }
  }
}

void TraceFinder::AddImageResult(const std::string& folder, const std::string& name) {
  const std::string path = StrCat(folder, "/", name);
  const auto image = results::ReadMapImage(allowed_, path);
  if (!image.ok()) return;
  TraceKeys keys = {KeyOfPath(path), KeyOfPath(image->path)};
  const bool is_there = Exists(Folders::OfThisUser(), image->path);
  if (image->pixel_digest && !is_there) keys.insert("hex:" + *image->pixel_digest);
  const Json columns =
      JsonAt(allowed_, StrCat(path, "/", results::kMapImageFile)).value("columns", Json());
  const auto cell = [&](const char* column) {
    const Json value = columns.is_object() ? columns.value(column, Json()) : Json();
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  const std::string id = cell("slide_id");
  keys.merge(KeysOfPatient(cell("patient_id")));
  if (!id.empty()) keys.insert("slide:" + id);
  keys.insert(StrCat("image:", folder, "#", id.empty() ? NameOf(image->path) : id));
  AddHex(cell("content_hash"), keys);
  Add(TraceKind::kResult, "result of map", path, std::move(keys));
}

/// The figures and plots of a cohort are over all of its slides: the analysis goes as a whole.
void TraceFinder::AddSpectra(const std::string& path) {
  const auto document = results::ReadSpectraDocument(allowed_, path);
  if (!document.ok()) return;
  TraceKeys ids;
  for (const results::SpectraSlide& slide : document->slides) ids.insert("id:" + slide.id);
  for (const results::SpectraFailure& failure : document->failed) {
    if (failure.id) ids.insert("id:" + *failure.id);
  }
  for (const char* name : {kSpectraFile, "spectra.csv", kManifestFile, "coefficients",
                           "histogram.png", "radial.png", "cohort.png"}) {
    const std::string part = StrCat(FolderOf(path), "/", name);
    if (!Exists(allowed_, part, false)) continue;
    Add(TraceKind::kResult, "spectra of all slides", part, ids, false);
  }
}

std::vector<KeyedRow> TraceFinder::RowsOf(const std::string& path, std::string_view text) const {
  const std::vector<CsvLine> lines = LinesOf(text);
  if (lines.size() < 2) return {};
  const std::vector<std::string>& columns = lines[0].fields;
  const auto has = [&](std::string_view column) {
    return std::find(columns.begin(), columns.end(), column) != columns.end();
  };
  const std::string folder = FolderOf(path);
  const bool is_spectra = IsRegularFile(allowed_, StrCat(folder, "/", kSpectraFile)) && has("id");
  const bool is_map =
      IsRegularFile(allowed_, StrCat(folder, "/", results::kMapFile)) && columns[0] == "image";
  const bool is_of_job = has("source") && (has("reason") || has("source_sha256"));
  const bool is_of_tiles = !has("path") && has("slide_id") && has("x") && has("y");
  if (!is_spectra && !is_map && !is_of_job && !is_of_tiles && !has("path")) return {};
  std::vector<KeyedRow> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Cells cells(columns, lines[i].fields);
    KeyedRow row{lines[i].line, i + 1 < lines.size() ? lines[i + 1].line : INT_MAX, {}, {}};
    if (is_of_tiles) {
      row.keys.insert("slide:" + cells["slide_id"]);
      if (rows.empty() || rows.back().keys != row.keys) rows.push_back(row);
      rows.back().end = row.end;  // a dataset has up to a million
      continue;
    }
    if (is_spectra) row.keys.insert("id:" + cells["id"]);
    if (is_map) {
      row.keys.insert(StrCat("image:", folder, "#", cells["image"]));
    }
    std::string source = cells.First({"path", "source"});
    if (!source.empty() && !is_map) {
      if (!source.starts_with('/')) source = StrCat(folder, "/", source);
      const std::string key = KeyOfPath(source);
      row.keys.insert(key);
      const std::string id = cells["slide_id"];
      row.keys.insert("slide:" + (id.empty() ? plan::StemOf(source) : id));
      const std::string series = SplitSeriesPath(key).series;
      if (!series.empty()) row.keys.insert("series:" + series);
    }
    if (is_of_job && IsPlainName(cells["store"])) {
      row.keys.insert(KeyOfPath(StrCat(folder, "/", cells["store"])));
    }
    for (const char* column : {"source_sha256", "content_hash"}) {
      AddHex(LowerCase(cells[column]), row.keys);
    }
    AddHex(cells["digest"], is_spectra ? row.keys : row.more);
    AddHex(cells["pixel_digest"], row.more);
    row.keys.merge(KeysOfPatient(cells["patient_id"]));
    rows.push_back(std::move(row));
  }
  return rows;
}

void TraceFinder::AddTable(const std::string& path) {
  const auto text = ReadFile(allowed_, path, plan::kMaxCohortBytes);
  if (!text.ok()) return;
  const std::vector<KeyedRow> rows = RowsOf(path, *text);
  if (rows.empty()) return;
  ++tables;
  const std::vector<CsvLine> lines = LinesOf(*text);
  const Cells heading(lines[0].fields, lines[0].fields);
  const bool is_manifest = NameOf(path) == kManifestFile;
  const bool is_table = !is_manifest && !heading["path"].empty();
  const TraceKind kind = is_manifest ? TraceKind::kManifestRow
                         : is_table  ? TraceKind::kTableRow
                                     : TraceKind::kRow;
  const bool has_runs = rows.size() < lines.size() - 1;
  const char* what = is_table ? "row of a table" : has_runs ? "rows" : "row";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Trace& row = Add(kind, what, path, rows[i].keys);
    row.line = rows[i].line;
    row.more = rows[i].more;
    if (!is_manifest) continue;
    const std::string made = Cells(lines[0].fields, lines[i + 1].fields)["store"];
    const std::string file = StrCat(FolderOf(path), "/", made);
    // A slide that `convert` made: its name alone, so that nothing outside of the folder is meant.
    const bool is_name = IsPlainName(made);
    const auto there = is_name ? StatOf(allowed_, file, false) : absl::NotFoundError("");
    if (!there.ok() || !S_ISREG(there->st_mode)) continue;
    Add(TraceKind::kResult, "converted slide", file, rows[i].keys);
  }
}

/// A sheet of `preview` shows the images of its mark, which stands at the end.
void TraceFinder::AddSheet(const std::string& path, std::uint64_t bytes) {
  const auto fd = OpenFile(allowed_, path, O_RDONLY | O_NONBLOCK);
  std::string end(std::min<std::uint64_t>(bytes, results::kMaxSheetMarkBytes), '\0');
  const auto into = std::as_writable_bytes(std::span(end));
  if (!fd.ok() || !ReadAt(fd->get(), bytes - end.size(), into, path).ok()) return;
  TraceKeys keys;
  for (const std::string& digest : results::MarkOf(end)) keys.insert("hex:" + digest);
  if (!keys.empty()) Add(TraceKind::kResult, "sheet of preview", path, std::move(keys), false);
}

void TraceFinder::AddLock(const std::string& path) {
  const auto text = ReadFile(allowed_, path, plan::kMaxLockBytes);
  if (!text.ok()) return;
  const auto lock = plan::ParseRunLock(*text, path);
  if (!lock.ok()) return;
  TraceKeys keys;
  for (const plan::LockedImage& image : lock->images) {
    keys.insert("hex:" + image.digest.Hex());
    if (!image.path.empty()) keys.insert(KeyOfPath(image.path));
    const auto patient = image.cells.find("patient_id");
    if (patient != image.cells.end()) keys.merge(KeysOfPatient(patient->second));
  }
  Add(TraceKind::kLock, "lock", path, std::move(keys), false);
}

}  // namespace patchbay::cli
