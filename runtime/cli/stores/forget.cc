// patchbay forget: takes out what jobs and commands left that derives from one slide or patient.
//
// All of it happens in this process, under the user's own rights: the identifier reaches no
// cluster, job, log or state, only its HMAC.
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/recorded_request.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/cli/seen_clusters.h"
#include "runtime/cli/stores/forgetting.h"
#include "runtime/cli/stores/traces.h"
#include "runtime/client/cluster.h"
#include "runtime/client/paths.h"
#include "runtime/client/site_file.h"
#include "runtime/client/up_lock.h"
#include "runtime/core/clock.h"
#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/source/series_path.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::cli {
namespace {

constexpr char kDoing[] = "forget", kRecordFile[] = "forgotten.csv";
constexpr std::size_t kMaxShown = 20;  ///< stores that cannot be judged, on the terminal

/// The folders as given, each once, and what may be touched in them and among the records of jobs.
/// A store that is named itself is renamed in the folder around it.
StatusOr<Folders> RightsTo(const client::Environment& environment,
                           std::vector<std::string>& folders) {
  Folders::Roots roots;
  for (std::string& folder : folders) {
    PB_ASSIGN_OR_RETURN(folder, client::AbsolutePath(folder));
    if (!IsFolder(Folders::OfThisUser(), folder)) {
      return ErrorAbout(absl::StatusCode::kNotFound, kDoing, folder, "not a folder");
    }
    const bool is_store = zarr::IsStore(Folders::OfThisUser(), folder);
    roots.write.push_back(is_store ? folder.substr(0, folder.rfind('/')) : folder);
  }
  std::sort(folders.begin(), folders.end());
  const auto is_within = [](const std::string& around, const std::string& folder) {
    return folder == around || folder.starts_with(around + "/");
  };
  folders.erase(std::unique(folders.begin(), folders.end(), is_within), folders.end());
  roots.write.push_back(RecordsFolder(environment));
  roots.read = roots.write;
  return Folders(std::move(roots));
}

/// "-" is the first line of standard input, so that no list of processes and no shell's history
/// has the identifier.
StatusOr<std::string> Given(const std::string& word) {
  if (word != "-") return word;
  std::string line;
  std::getline(std::cin, line);
  while (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.empty()) return UsageError("forget: standard input has no line with the identifier");
  return line;
}

/// The key that commands of this home use by themselves, else the account.
std::string NameOfKey(const Session& session) {
  const std::string path = session.cluster_file.empty() ? StrCat(session.environment.home, "/",
                                                                 client::kOperatorKeyName, ".key")
                                                        : session.cluster_file;
  if (const auto key = control::ReadKeyFile(path); key.ok()) return key->name;
  const passwd* const account = getpwuid(getuid());
  return account == nullptr ? StrCat("uid ", getuid()) : account->pw_name;
}

/// PATCHBAY_HOME/forgotten.csv, owner-only: time, key, pseudonym.
Status Record(const Session& session, const std::string& hmac) {
  const std::string path = StrCat(session.environment.home, "/", kRecordFile);
  const std::time_t now = WallClockSeconds();
  std::tm parts{};
  char text[32] = "";
  if (gmtime_r(&now, &parts) != nullptr) std::strftime(text, sizeof text, "%FT%TZ", &parts);
  const std::string line = StrCat(text, ",", NameOfKey(session), ",", hmac, "\n");
  PB_ASSIGN_OR_RETURN(
      const UniqueFd fd,
      OpenFile(Folders::OfThisUser(), path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
  const bool is_written =
      write(fd.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      fsync(fd.get()) == 0;
  return is_written ? absl::OkStatus() : FromErrno("write", path, errno);
}

/// All that is tied to the source that is asked for.
struct Forgotten {
  const TraceFinder& finder;
  TraceKeys keys = {};
  std::vector<std::size_t> tied = {};  ///< indices into finder.traces
  std::string hmac = {};

  bool Has(std::size_t trace) const { return std::binary_search(tied.begin(), tied.end(), trace); }
};

/// Rows of one table with different patients that have one content are a fault of the table: the
/// other patient's traces must not go.
Status CheckOnePatient(const Forgotten& found) {
  std::map<std::string, const Trace*> first;  // row of each table
  for (const std::size_t i : found.tied) {
    const Trace& row = found.finder.traces[i];
    if (row.kind != TraceKind::kTableRow || row.patients.empty()) continue;
    const Trace* const before = first.emplace(row.path, &row).first->second;
    if (before->patients == row.patients) continue;
    return FailedPrecondition("forget: ", row.path, ": lines ", before->line, " and ", row.line,
                              " have one content and different patients: correct the table, or "
                              "forget the slide (--slide)");
  }
  return absl::OkStatus();
}

/// Stores that tell nobody whose they are: without identity, and of no row with a patient.
std::vector<std::string> WithoutPatient(const Forgotten& found) {
  const std::vector<Trace>& traces = found.finder.traces;
  TraceKeys known;
  for (const Trace& trace : traces) {
    if (!trace.patients.empty()) known.insert(trace.keys.begin(), trace.keys.end());
  }
  const std::vector<std::size_t> judged = TieTraces(traces, true, known);
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (traces[i].kind != TraceKind::kStore || found.Has(i)) continue;
    if (!std::binary_search(judged.begin(), judged.end(), i)) unknown.push_back(traces[i].path);
  }
  return unknown;
}

/// Files and folders that the traces were made from and that are still there.
std::vector<std::string> SourcesOf(const Forgotten& found) {
  std::set<std::string> sources, own;
  for (const std::size_t i : found.tied) {
    const Trace& trace = found.finder.traces[i];
    own.insert(found.finder.KeyOfPath(trace.path));
    if (!trace.joins) continue;
    for (const std::string& key : trace.keys) {
      if (key.starts_with("path:")) sources.insert(key);
    }
  }
  std::vector<std::string> there;
  for (const std::string& key : sources) {
    const std::string path = SplitSeriesPath(key.substr(key.find(':') + 1)).path;
    if (own.contains(key) || !Exists(Folders::OfThisUser(), path)) continue;
    there.push_back(key.substr(key.find(':') + 1));
  }
  return there;
}

using SeeJob = std::function<void(client::Client& client, const protocol::JobRow& job)>;

/// Calls `see` with each job of the clusters that this home sees; OK where none runs.
Status LookAtJobs(const Session& session, const SeeJob& see) {
  const Status looked = LookAtClusters(session, [&](client::Client& client, const std::string&) {
    PB_ASSIGN_OR_RETURN(const auto jobs, client.DescribeAllJobs());
    for (const protocol::JobRow& job : jobs) see(client, job);
    return absl::OkStatus();
  });
  const bool may_have_none =
      session.cluster_file.empty() &&
      client::ClusterHere(session.environment) == client::ClusterState::kNone;
  return may_have_none ? absl::OkStatus() : looked;
}

/// Ended jobs over what is tied, whose paths the journal of their cluster keeps; `see` is called
/// with each.
std::vector<JobId> JournalledJobs(const Session& session, const Forgotten& found,
                                  const SeeJob& see) {
  std::set<std::string> records;
  for (const std::size_t i : found.tied) records.insert(found.finder.traces[i].path);
  std::vector<JobId> ended;
  const auto take = [&](client::Client& client, const protocol::JobRow& job) {
    const bool is_over_it = records.contains(RecordPath(session.environment, job));
    if (!is_over_it || !client::HasEnded(job.state)) return;
    ended.push_back(job.job);
    see(client, job);
  };
  const Status looked = LookAtJobs(session, take);
  if (!looked.ok()) {
    session.terminal.Note(StrCat("the cluster's journal may name it: ", MessageOf(looked)));
  }
  std::sort(ended.begin(), ended.end());
  return ended;
}

/// Refuses while a job, a stream or another program is seen to use what would go.
Status CheckUnused(const Session& session, const Folders& allowed, const Forgotten& found) {
  const auto refuse = [](const std::string& path, const std::string& user) {
    return ErrorAbout(absl::StatusCode::kFailedPrecondition, kDoing, path,
                      user + " uses it; end that first");
  };
  std::map<std::string, JobId> running;  // by its record
  PB_RETURN_IF_ERROR(LookAtJobs(session, [&](client::Client&, const protocol::JobRow& job) {
    if (!client::HasEnded(job.state)) running[RecordPath(session.environment, job)] = job.job;
  }));
  std::vector<std::string> folders;
  for (const std::size_t i : found.tied) {
    const Trace& trace = found.finder.traces[i];
    if (const auto job = running.find(trace.path); job != running.end()) {
      return refuse(trace.path, StrCat("job ", job->second));
    }
    if (HasLivingOwner(allowed, trace.path)) return refuse(trace.path, "a job that runs");
    if (trace.kind == TraceKind::kResult || trace.kind == TraceKind::kStore) {
      folders.push_back(trace.path);
    }
  }
  const auto used = UsedAmong(folders);
  return used ? refuse(used->first, used->second) : absl::OkStatus();
}

Json ResultOf(const Forgotten& found) {
  Json traces = Json::array(), locks = Json::array();
  for (const std::size_t i : found.tied) {
    const Trace& trace = found.finder.traces[i];
    if (trace.kind == TraceKind::kLock) locks.push_back(trace.path);
    if (trace.kind == TraceKind::kLock) continue;
    Json& one = traces.emplace_back(Json{{"what", trace.what}, {"path", trace.path}});
    if (trace.line != 0) one["line"] = trace.line;
  }
  return {{"pseudonym", found.hmac},
          {"traces", std::move(traces)},
          {"locks", std::move(locks)},
          {"sources", SourcesOf(found)}};
}

void Show(Terminal& terminal, const Forgotten& found, const std::vector<std::string>& unknown) {
  std::size_t traces = 0;
  for (const std::size_t i : found.tied) {
    const Trace& trace = found.finder.traces[i];
    const std::string line = trace.line == 0 ? "" : StrCat(":", trace.line);
    const bool is_lock = trace.kind == TraceKind::kLock;
    terminal.Say(StrCat(is_lock ? "no longer holds: lock " : trace.what + " ", trace.path, line));
    traces += is_lock ? 0 : 1;
  }
  for (const std::string& source : SourcesOf(found)) {
    terminal.Say(StrCat("stays, as it is not Patchbay's: ", source));
  }
  terminal.Say(StrCat(Counted(traces, "trace"), " of ", found.hmac));
  if (found.finder.links > 0) {
    terminal.Note(StrCat(Counted(found.finder.links, "link was", "links were"), " not followed"));
  }
  if (unknown.empty()) return;
  terminal.Note(StrCat(Counted(unknown.size(), "store"),
                       " cannot be judged: no identity (NIfTI, --keep-names, slides) and no row of "
                       "a table with a patient_id:"));
  for (std::size_t i = 0; i < std::min(unknown.size(), kMaxShown); ++i) {
    terminal.Note("  " + unknown[i]);
  }
  if (unknown.size() > kMaxShown)
    terminal.Note(StrCat("  and ", unknown.size() - kMaxShown, " more"));
}

class ForgetCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"--patient", "ID",
             "DICOM's PatientID, or patient_id of a table; - reads it from stdin", &patient_},
            {"--slide", "ID", "slide_id, path, or name of a file or store; - reads it from stdin",
             &slide_},
            {"--in", "FOLDER", "where to look, at any depth; several may follow", &folders_, true},
            {"FOLDER", "", "further folders", &more_},
            {"--yes", "", "remove what is listed; without it nothing is changed", &yes_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    if (patient_.empty() == slide_.empty()) {
      return UsageError("forget: give --patient ID or --slide ID, one of the two");
    }
    folders_.insert(folders_.end(), more_.begin(), more_.end());
    PB_ASSIGN_OR_RETURN(const Folders allowed, RightsTo(session.environment, folders_));
    PB_ASSIGN_OR_RETURN(const std::string key, PseudonymKey(session.environment));
    TraceFinder finder(allowed, key);
    for (const std::string& folder : folders_) PB_RETURN_IF_ERROR(finder.Find(folder));
    for (const auto& [file, paths] : RecordsOfJobs(session.environment)) {
      finder.AddJobRecord(file, paths);
    }
    std::sort(finder.traces.begin(), finder.traces.end(), [](const Trace& a, const Trace& b) {
      return std::tie(a.kind, a.path, a.line) < std::tie(b.kind, b.path, b.line);
    });
    Forgotten found{finder};
    PB_ASSIGN_OR_RETURN(found.keys, Wanted(finder));
    found.hmac = hmac_;
    found.keys.merge(KeysOfKilledRun(session));
    found.tied = TieTraces(finder.traces, !patient_.empty(), found.keys);
    PB_RETURN_IF_ERROR(CheckFound(found));
    if (!patient_.empty()) PB_RETURN_IF_ERROR(CheckOnePatient(found));
    const std::vector<std::string> unknown =
        patient_.empty() ? std::vector<std::string>() : WithoutPatient(found);
    Show(session.terminal, found, unknown);
    const std::vector<JobId> journalled = JournalledJobs(session, found, [](auto&&...) {});
    for (const JobId job : journalled) {
      session.terminal.Say(StrCat("job of a cluster's journal ", job));
    }
    if (yes_) PB_RETURN_IF_ERROR(Remove(session, allowed, found));
    Json result = ResultOf(found);
    result.update({{"patient_unknown", unknown},
                   {"journalled_jobs", journalled},
                   {"links", finder.links},
                   {"removed", yes_}});
    session.terminal.Result(result);
    return ExitCode::kDone;
  }

 private:
  /// The keys of the source that is asked for; fills hmac_.
  StatusOr<TraceKeys> Wanted(const TraceFinder& finder) {
    const bool is_patient = !patient_.empty();
    PB_ASSIGN_OR_RETURN(const std::string id, Given(is_patient ? patient_ : slide_));
    hmac_ = finder.Pseudonym(is_patient ? "patient" : "slide", id);
    TraceKeys keys = is_patient ? finder.KeysOfPatient(id) : TraceKeys{"slide:" + id};
    keys.insert(kLeftoverKey);
    const bool is_path = id.find('/') != std::string::npos || Exists(Folders::OfThisUser(), id);
    if (!is_patient && is_path) keys.insert(finder.KeyOfPath(id));
    return keys;
  }

  /// The keys of a removal that has begun: what it removed first may have told the rest.
  std::string KeysFile(const Session& session) const {
    return StrCat(session.environment.home, "/forget-", hmac_, ".json");
  }
  TraceKeys KeysOfKilledRun(const Session& session) {
    const auto text = ReadFile(Folders::OfThisUser(), KeysFile(session), kMaxJsonBytes);
    const auto json = text.ok() ? ParseJson(*text, kDoing) : text.status();
    if (!json.ok() || !json->is_array()) return {};
    goes_on_ = true;
    TraceKeys keys;
    for (const Json& key : *json) {
      if (key.is_string()) keys.insert(key.get<std::string>());
    }
    return keys;
  }

  Status CheckFound(const Forgotten& found) const {
    if (!found.tied.empty() || goes_on_) return absl::OkStatus();
    return NotFound("forget: nothing that derives from it in ", StrJoin(folders_, ", "), " (",
                    Counted(found.finder.traces.size(), "trace"), " of others, ",
                    Counted(found.finder.tables, "table"),
                    " read): is it in a table with another id, or were the stores made under "
                    "another pseudonym key?");
  }

  /// Before the records of the jobs go, by which they are found.
  static Status ForgetJobs(const Session& session, const Forgotten& found) {
    Status all;
    JournalledJobs(session, found, [&](client::Client& client, const protocol::JobRow& job) {
      const Status done = client.ChangeJob({job.job, protocol::JobChange::kForget});
      if (!absl::IsNotFound(done)) all.Update(done);
    });
    return all;
  }

  Status Remove(Session& session, const Folders& allowed, const Forgotten& found) const {
    PB_RETURN_IF_ERROR(CheckUnused(session, allowed, found));
    PB_RETURN_IF_ERROR(Record(session, hmac_));
    PB_ASSIGN_OR_RETURN(const client::Site site, client::ReadSite(session.environment));
    ForgettingRights rights{allowed, {}};
    PB_ASSIGN_OR_RETURN(rights.sharing, client::SharingOf(site));
    PB_RETURN_IF_ERROR(WriteFileDurably(Folders::OfThisUser(), KeysFile(session),
                                        AsBytes(DumpJson(found.keys)), 0600));
    PB_RETURN_IF_ERROR(ForgetJobs(session, found));
    PB_RETURN_IF_ERROR(RemoveTraces(rights, found.finder, found.tied, found.keys));
    PB_RETURN_IF_ERROR(RemoveFile(Folders::OfThisUser(), KeysFile(session)));
    session.terminal.Say(StrCat("removed; ", session.environment.home, "/", kRecordFile,
                                " has the time and the pseudonym"));
    return absl::OkStatus();
  }

  std::string patient_, slide_, hmac_;
  std::vector<std::string> folders_, more_;
  bool yes_ = false, goes_on_ = false;
};

}  // namespace

const char kForgetNote[] =
    "Lists stores, label sets, rows of tables, results of map, spectra, previews and state of\n"
    "jobs; --yes removes them. Sources, exports of labels, saved batches and models stay. Locks\n"
    "that name what goes no longer hold. Other users of the machine see an ID on the command\n"
    "line; --patient - they do not. After a kill, run the command again.\n";

std::unique_ptr<Command> MakeForget() { return std::make_unique<ForgetCommand>(); }

}  // namespace patchbay::cli
