#include "workers/access/subject_table.h"

#include <algorithm>
#include <string_view>

#include "runtime/core/strings.h"
#include "runtime/model/jobs/job_manifest.h"
#include "workers/access/path_rights.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kUnknownPath = "a file";
/// Paths of the system, which cannot name a patient.
constexpr std::string_view kSystem[] = {"/proc/", "/dev/", "/sys/"};

/// The parts of a path, without empty ones.
std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

bool IsOfSystem(std::string_view path) {
  return std::any_of(std::begin(kSystem), std::end(kSystem),
                     [&](std::string_view each) { return path.starts_with(each); });
}

bool IsStoreName(std::string_view part) {
  constexpr std::string_view kEnd = ".zarr";
  return part.size() >= kEnd.size() && part.substr(part.size() - kEnd.size()) == kEnd;
}

/// Whether a name inside a store is fixed by the format or by Patchbay.
bool IsFixed(std::string_view part) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return part == "zarr.json" || part == "c" || part == "labels" ||
         std::all_of(part.begin(), part.end(), is_digit);
}

/// `rest`, a path below `path` that begins with '/', shown as "/..." with only the fixed names
/// inside a store: "/.../0/zarr.json". Users choose the names of label sets, so these are hidden.
std::string RestShown(std::string_view path, std::string_view rest) {
  constexpr std::string_view kHidden = "/...";
  bool in_store = IsStoreName(path.substr(path.rfind('/') + 1)), in_labels = false;
  std::string shown(in_store ? "" : kHidden);
  bool hid = !in_store;  // last
  for (const std::string_view part : PartsOf(rest)) {
    if (!in_store) {
      in_store = IsStoreName(part);
      continue;
    }
    const bool shows = IsFixed(part) && (!in_labels || part == "zarr.json");
    if (shows) shown += StrCat("/", part);
    if (!shows && !hid) shown += kHidden;
    hid = !shows;
    in_labels = part == "labels";
  }
  return shown;
}

void AddList(const std::vector<std::string>& paths, SubjectKind kind, SubjectTable& table) {
  for (std::size_t i = 0; i < paths.size(); ++i) table.AddFolder(paths[i], {kind, i, ""});
}

}  // namespace

void SubjectTable::Add(std::string path, const Subject& subject, bool hides_rest) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.size() <= 1 || path.front() != '/') return;
  rows_.push_back({std::move(path), subject, hides_rest});
}

void SubjectTable::Add(const std::string& path, const Subject& subject) {
  Add(path, subject, false);
}

void SubjectTable::AddFolder(const std::string& path, const Subject& subject) {
  Add(path, subject, true);
  const auto canonical = CanonicalPath(path);
  if (canonical.ok()) Add(*canonical, subject, true);
}

void SubjectTable::AddManifest(const Json& manifest) {
  const auto job = FromJson<JobManifest>(manifest, "manifest", UnknownKeys::kSkipped);
  if (!job.ok()) return;
  AddList(job->images, SubjectKind::kStore, *this);
  AddList(job->sources, SubjectKind::kFile, *this);
  for (std::size_t i = 0; i < job->label_rows.size(); ++i) {
    AddFolder(job->label_rows[i].store, {SubjectKind::kStore, i, ""});
    AddFolder(job->label_rows[i].file, {SubjectKind::kFile, i, ""});
  }
  Add(job->out, {SubjectKind::kRun, 0, ""}, false);
  const auto canonical = CanonicalPath(job->out);
  if (canonical.ok()) Add(*canonical, {SubjectKind::kRun, 0, ""}, false);
}

std::string SubjectTable::PathOf(const Subject& subject) const {
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& each) {
    return each.subject.kind == subject.kind && each.subject.index == subject.index;
  });
  return row == rows_.end() ? "" : row->path;
}

/// `rest` begins with '/' or is empty.
Subject SubjectTable::SubjectOf(const Row& row, std::string_view rest) const {
  Subject subject = row.subject;
  if (rest.empty()) return subject;
  const std::string shown = row.hides_rest ? RestShown(row.path, rest) : std::string(rest);
  subject.part = shown.substr(1);
  return subject;
}

Subject SubjectTable::Settled(const Subject& subject) const {
  const std::string& path = subject.part;
  if (!path.starts_with('/')) return subject;
  for (const Row& row : rows_) {
    if (!path.starts_with(row.path)) continue;
    const std::string_view rest = std::string_view(path).substr(row.path.size());
    if (rest.empty() || rest.front() == '/') return SubjectOf(row, rest);
  }
  return IsOfSystem(path) ? subject : Subject{SubjectKind::kNone, 0, std::string(kUnknownPath)};
}

Status SubjectTable::Settle(const Status& status) const {
  if (status.ok()) return status;
  SubjectTable sorted = *this;
  std::stable_sort(sorted.rows_.begin(), sorted.rows_.end(),
                   [](const Row& a, const Row& b) { return a.path.size() > b.path.size(); });
  Outcome outcome = OutcomeOf(status);
  outcome.subject = sorted.Settled(outcome.subject);
  for (Subject& other : outcome.others) other = sorted.Settled(other);
  return StatusOf(outcome);
}

std::string TextWithoutSubject(const Status& status) {
  Outcome outcome = OutcomeOf(SubjectTable().Settle(status));
  outcome.subject = {};
  return TextOf(outcome);
}

}  // namespace patchbay::workers
