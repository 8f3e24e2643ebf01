#include "runtime/cli/site/rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cli/command.h"
#include "runtime/cli/interrupt.h"
#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/host_identity.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::cli {
namespace {

constexpr std::string_view kFirst = "first-", kHello = "hello-", kAnswer = "answer-",
                           kEnded = "ended-";
constexpr TimeMs kAnswerMs = 3'000;  ///< a first node that lives has answered by then
constexpr std::size_t kMaxFiles = 4 * kMaxSiteNodes;

const Folders& Ours() { return Folders::OfThisUser(); }

/// Names in the folder. It is listed, since a client of NFS remembers names that were not there.
StatusOr<std::vector<std::string>> Names(const std::string& path) {
  return ListFolder(Ours(), path, kMaxFiles);
}

Status Write(const std::string& path, const Json& content) {
  return ReplaceFile(Ours(), path, AsBytes(DumpJson(content)), 0600);
}

StatusOr<Json> Read(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, control::ReadPrivateFile(path));
  return ParseJson(text, path);
}

/// The process as other nodes are told of it.
std::string ThisProcess() { return StrCat(HostName(), " (process ", getpid(), ")"); }

Json HelloOf(const Engine& engine) {
  return {{"rank", engine.rank}, {"name", engine.name}, {"from", ThisProcess()}};
}

/// The answer to a hello: keys, or a usage error.
StatusOr<SiteKeys> KeysOf(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const Json answer, Read(path));
  if (const auto refusal = JsonString(answer, "refused", path); refusal.ok()) {
    return UsageError(StrCat("site run: ", *refusal));
  }
  SiteKeys keys;
  PB_ASSIGN_OR_RETURN(keys.node, JsonString(answer, "node", path));
  PB_ASSIGN_OR_RETURN(keys.trainer, JsonString(answer, "trainer", path));
  return keys;
}

/// The number of the latest claim, 0 without one.
std::int64_t LatestClaim(const std::vector<std::string>& names) {
  std::int64_t latest = 0;
  for (const std::string& name : names) {
    if (!name.starts_with(kFirst)) continue;
    latest = std::max<std::int64_t>(latest, std::atoll(name.c_str() + kFirst.size()));
  }
  return latest;
}

}  // namespace

StatusOr<std::string> EnterRendezvous(const std::string& folder, const std::string& run) {
  std::string path = StrCat(folder, "/", run);
  PB_RETURN_IF_ERROR(MakeDirectories(Ours(), path, 0700));
  struct stat entry {};
  if (lstat(path.c_str(), &entry) != 0) return FromErrno("open", path, errno);
  if (S_ISLNK(entry.st_mode)) return FailedPrecondition("open: ", path, ": a link");
  PB_RETURN_IF_ERROR(control::CheckPrivateFolder(path));
  return path;
}

StatusOr<SiteHost> SiteHost::Open(const std::string& folder, const Engine& engine,
                                  const std::function<bool()>& keep_waiting) {
  PB_ASSIGN_OR_RETURN(std::string path, EnterRendezvous(folder, engine.run));
  SiteHost host(std::move(path), engine);
  PB_RETURN_IF_ERROR(host.Claim(keep_waiting));
  host.joined_by_[engine.name] = ThisProcess();
  return host;
}

Status SiteHost::Claim(const std::function<bool()>& keep_waiting) {
  while (true) {
    PB_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(path_));
    const std::int64_t latest = LatestClaim(names);
    if (latest > 0) PB_RETURN_IF_ERROR(AskFirst(keep_waiting));
    // One process alone makes a name, so that of two at once one asks the other.
    const std::string claim = StrCat(kFirst, latest + 1);
    const auto fd = OpenFile(Ours(), StrCat(path_, "/", claim), O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (absl::IsAlreadyExists(fd.status())) continue;
    if (!fd.ok()) return fd.status();
    claim_ = claim;
    // Nodes of today ask again; files of an earlier start mislead nobody.
    for (const std::string& name : names) unlink(StrCat(path_, "/", name).c_str());
    return absl::OkStatus();
  }
}

/// OK where the first node is gone.
Status SiteHost::AskFirst(const std::function<bool()>& keep_waiting) {
  const std::string nonce = Hex64(RandomU64());
  const std::string answer = StrCat(path_, "/", kAnswer, nonce);
  PB_RETURN_IF_ERROR(Write(StrCat(path_, "/", kHello, nonce), HelloOf(engine_)));
  const TimeMs deadline = SteadyClock().NowMs() + kAnswerMs;
  while (SteadyClock().NowMs() < deadline) {
    if (!keep_waiting()) return Cancelled("site run: interrupted");
    PB_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(path_));
    if (std::find(names.begin(), names.end(), StrCat(kAnswer, nonce)) != names.end()) {
      return KeysOf(answer).status();
    }
    PauseMs(kRendezvousLookMs);
  }
  return absl::OkStatus();
}

SiteHost::~SiteHost() {
  if (claim_.empty() || path_.empty()) return;
  const auto names = Names(path_);
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const bool is_ours = name.starts_with(kFirst) || name.starts_with(kHello) ||
                         name.starts_with(kAnswer) || name.starts_with(kEnded);
    if (is_ours) unlink(StrCat(path_, "/", name).c_str());
  }
  rmdir(path_.c_str());
}

Status SiteHost::Look(const std::map<std::string, SiteKeys>& keys) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(path_));
  if (claim_ != StrCat(kFirst, LatestClaim(names))) {
    return Aborted("site run: ", path_, ": another first node has taken this rendezvous");
  }
  for (const std::string& name : names) {
    if (name.starts_with(kHello) && !answered_.contains(name)) {
      PB_RETURN_IF_ERROR(Answer(name, keys));
    }
    if (!name.starts_with(kEnded)) continue;
    PB_ASSIGN_OR_RETURN(const Json end, Read(StrCat(path_, "/", name)));
    PB_ASSIGN_OR_RETURN(const std::int64_t status, JsonInt(end, "status", name));
    ended_[std::atoll(name.c_str() + kEnded.size())] = static_cast<int>(status);
  }
  return absl::OkStatus();
}

Status SiteHost::Answer(const std::string& hello, const std::map<std::string, SiteKeys>& keys) {
  PB_ASSIGN_OR_RETURN(const Json asked, Read(StrCat(path_, "/", hello)));
  PB_ASSIGN_OR_RETURN(const std::int64_t rank, JsonInt(asked, "rank", hello));
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(asked, "name", hello));
  PB_ASSIGN_OR_RETURN(const std::string from, JsonString(asked, "from", hello));
  const auto joined = joined_by_.find(name);
  const auto key = keys.find(name);
  Json answer;
  if (rank == 0) {
    answer["refused"] = StrCat(path_, ": this site has a first node: ", ThisProcess());
  } else if (joined != joined_by_.end()) {
    answer["refused"] = StrCat(name, " has joined already: ", joined->second);
  } else if (key == keys.end()) {
    answer["refused"] = StrCat(name, " is not one of the nodes: ", StrJoin(engine_.nodes, ", "));
  } else {
    answer = {{"node", key->second.node}, {"trainer", key->second.trainer}};
    joined_by_[name] = from;
  }
  answered_.insert(hello);
  return Write(StrCat(path_, "/", kAnswer, hello.substr(kHello.size())), answer);
}

std::vector<std::string> SiteHost::Missing() const {
  std::vector<std::string> missing = engine_.nodes;
  std::erase_if(missing, [&](const std::string& name) { return joined_by_.contains(name); });
  return missing;
}

StatusOr<SiteGuest> SiteGuest::Join(const std::string& folder, const Engine& engine,
                                    const std::function<bool()>& keep_waiting) {
  const std::string nonce = Hex64(RandomU64());
  const std::string hello = StrCat(kHello, nonce), answer = StrCat(kAnswer, nonce);
  while (keep_waiting()) {
    PB_ASSIGN_OR_RETURN(const std::string path, EnterRendezvous(folder, engine.run));
    const auto names = Names(path);  // an ending site may remove the folder meanwhile
    const auto has = [&](const std::string& name) {
      return names.ok() && std::find(names->begin(), names->end(), name) != names->end();
    };
    if (has(answer)) {
      PB_ASSIGN_OR_RETURN(SiteKeys keys, KeysOf(StrCat(path, "/", answer)));
      return SiteGuest(path, engine.rank, answer, std::move(keys));
    }
    if (names.ok() && !has(hello)) {
      const Status asked = Write(StrCat(path, "/", hello), HelloOf(engine));
      if (!asked.ok() && !absl::IsNotFound(asked)) return asked;
    }
    PauseMs(kRendezvousLookMs);
  }
  return Cancelled("site run: ", folder, ": no first node has answered");
}

bool SiteGuest::SiteLives() const {
  const auto names = Names(path_);
  return names.ok() && std::find(names->begin(), names->end(), answer_) != names->end();
}

Status SiteGuest::ReportEnd(int status) const {
  return Write(StrCat(path_, "/", kEnded, rank_), {{"status", status}});
}

}  // namespace patchbay::cli
