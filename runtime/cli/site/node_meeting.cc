#include "runtime/cli/site/node_meeting.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/cli/interrupt.h"
#include "runtime/cli/site/rendezvous.h"
#include "runtime/cli/site/site_address.h"
#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/network_file_system.h"
#include "runtime/wire/data/sockets.h"

namespace patchbay::cli {
namespace {

constexpr TimeMs kMeetMs = 3'000, kPartMs = 10'000;
constexpr std::size_t kMaxAddressBytes = 128;
// A node is here until it has met all others; then the file gets its second name, which stays until
// all have.
constexpr std::string_view kHere = "here-", kMet = "met-";

std::vector<std::string> NamesOrNone(const std::string& path) {
  return ListFolder(Folders::OfThisUser(), path, 4 * kMaxSiteNodes)
      .value_or(std::vector<std::string>());
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> Missing(const Engine& engine, const std::string& path) {
  const std::vector<std::string> names = NamesOrNone(path);
  std::vector<std::string> missing = engine.nodes;
  std::erase_if(missing, [&](const std::string& node) {
    return Has(names, StrCat(kHere, node)) || Has(names, StrCat(kMet, node));
  });
  return missing;
}

/// "NFS", or that it is a disk of this machine.
std::string PlaceOf(const std::string& path) {
  struct statfs status {};
  statfs(path.c_str(), &status);
  const std::string_view name = NetworkFileSystemOf(static_cast<std::uint32_t>(status.f_type));
  return name.empty() ? "a file system not known as a network's" : std::string(name);
}

/// Whether one of two openings of a file keeps its lock from the other.
bool Locks(const std::string& file) {
  const auto one = OpenFile(Folders::OfThisUser(), file, O_RDWR),
             two = OpenFile(Folders::OfThisUser(), file, O_RDWR);
  return one.ok() && two.ok() && flock(one->get(), LOCK_EX | LOCK_NB) == 0 &&
         flock(two->get(), LOCK_EX | LOCK_NB) != 0;
}

/// Whether users besides this one may remove files of the folder.
bool OpenToOthers(const std::string& folder) {
  struct stat entry {};
  return stat(folder.c_str(), &entry) == 0 && (entry.st_mode & 022) != 0 &&
         (entry.st_mode & S_ISVTX) == 0;
}

Check CheckPlace(const Engine& engine, const std::string& folder, const std::string& path,
                 const std::vector<std::string>& missing) {
  Check check{"rendezvous", CheckState::kOk,
              StrCat(folder, " on ", PlaceOf(path), ", seen by ",
                     engine.nodes.size() - missing.size(), " of ", engine.nodes.size(), " nodes"),
              ""};
  if (!missing.empty()) {
    check.state = CheckState::kBroken;
    check.means = StrCat("not seen from ", StrJoin(missing, ", "),
                         ": name a folder on a shared file system with --rendezvous");
  } else if (OpenToOthers(folder)) {
    check.state = CheckState::kLacks;
    check.means = StrCat("other users may remove its files: chmod 700 ", folder);
  } else if (!Locks(StrCat(path, "/", kHere, engine.name))) {
    check.state = CheckState::kLacks;
    check.means = "no locks (flock): two jobs that write one folder are not kept apart";
  }
  return check;
}

/// Whether the first node's listener answers.
Check CheckFirst(const Engine& engine, const std::string& path) {
  StatusOr<std::string> address = NotFound("no address");
  for (const std::string_view state : {kHere, kMet}) {
    if (address.ok()) break;
    address = ReadFile(Folders::OfThisUser(), StrCat(path, "/", state, engine.nodes[0]),
                       kMaxAddressBytes);
  }
  Check check = address.ok()
                    ? CheckReach(*address)
                    : Check{"", CheckState::kBroken, std::string(MessageOf(address.status())),
                            "the first node did not come"};
  check.name = "ports";
  if (check.state != CheckState::kOk) {
    check.means = StrCat("nodes must reach ", engine.nodes[0],
                         " on any port: open them between the nodes, or name another --interface");
  }
  return check;
}

/// The first node's listener; an empty one on the others.
StatusOr<UniqueFd> Listen(const Engine& engine, const std::string& interface,
                          std::string* address) {
  if (engine.rank != 0) return UniqueFd();
  PB_ASSIGN_OR_RETURN(const std::string host, AddressInSite(engine, interface));
  return data::ListenTcp(host, {}, address);
}

bool AnyIsHere(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with(kHere); });
}

void WaitWhile(const std::function<bool()>& condition, TimeMs deadline_ms) {
  while (condition() && !Interrupted() && SteadyClock().NowMs() < deadline_ms) {
    PauseMs(kRendezvousLookMs);
  }
}

}  // namespace

MeetingChecks MeetNodes(const Engine& engine, const std::string& folder,
                        const std::string& interface) {
  const StatusOr<std::string> path = EnterRendezvous(folder, "doctor-" + engine.run);
  if (!path.ok()) {
    return {BrokenCheck("rendezvous", path.status(), "nodes cannot find one another there"),
            BrokenCheck("ports", path.status(), "not tested without a rendezvous")};
  }
  std::string address;
  const StatusOr<UniqueFd> listener = Listen(engine, interface, &address);
  const std::string here = StrCat(*path, "/", kHere, engine.name);
  const std::string met = StrCat(*path, "/", kMet, engine.name);
  const Status came = ReplaceFile(Folders::OfThisUser(), here, AsBytes(address), 0600);
  const TimeMs begin = SteadyClock().NowMs();
  WaitWhile([&] { return came.ok() && !Missing(engine, *path).empty(); }, begin + kMeetMs);
  MeetingChecks checks{CheckPlace(engine, folder, *path, Missing(engine, *path)),
                       CheckFirst(engine, *path)};
  if (!came.ok()) {
    checks.rendezvous = BrokenCheck("rendezvous", came, "nothing can be written there");
  }
  if (!listener.ok()) {
    checks.ports = BrokenCheck("ports", listener.status(), "name the network with --interface");
  }
  rename(here.c_str(), met.c_str());
  WaitWhile([&] { return AnyIsHere(NamesOrNone(*path)); }, begin + kMeetMs + kPartMs);
  unlink(met.c_str());
  rmdir(path->c_str());
  return checks;
}

}  // namespace patchbay::cli
