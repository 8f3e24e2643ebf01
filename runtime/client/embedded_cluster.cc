#include "runtime/client/embedded_cluster.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/cord.h"
#include "runtime/client/node_settings.h"
#include "runtime/client/temporary_folder.h"
#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/authorized_keys.h"

extern char** environ;

namespace patchbay::client {
namespace {

// Starts a cluster's processes from a process that may have threads, children and signal handlers
// of its own: through patchbay-launcher (workers/agent/launcher.h), which inherits nothing from the
// caller.

struct LaunchRequest {
  std::string folder;    ///< the launcher removes it at the end
  int lock_fd = -1;      ///< the folder's lock: held by the launcher too
  std::string log_file;  ///< standard output and error of all of them
  std::string share, hello;
  long stop_ms = 2'000;
};

constexpr int kLinkFd = 3, kLockFd = 4, kFirstClosed = 5;
constexpr int kOutOfTheWay = 64;  ///< copies are numbered above the child's descriptors

StatusOr<std::vector<std::string>> LauncherCommand(const NodeSettings& settings,
                                                   const LaunchRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::string launcher,
                      ProgramPath(settings.programs, "patchbay-launcher"));
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> supervisor, SupervisorCommand(settings));
  std::vector<std::string> words = {
      launcher,       "--owner",   StrCat(getpid()),        "--link", StrCat(kLinkFd), "--folder",
      request.folder, "--stop-ms", StrCat(request.stop_ms), "--lock", StrCat(kLockFd)};
  if (!request.share.empty()) {
    for (const std::string& word :
         {std::string("--share"), request.share, std::string("--hello"), request.hello}) {
      words.push_back(word);
    }
  }
  words.emplace_back("--");
  words.insert(words.end(), supervisor.begin(), supervisor.end());
  return words;
}

/// The attributes and file actions of one posix_spawn; frees them.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void Descriptors(const std::string& log_file, int link, int lock) {
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log_file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, link, kLinkFd);
    posix_spawn_file_actions_adddup2(&actions_, lock, kLockFd);
    posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstClosed);
  }

  void DefaultSignals() {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }

  /// The pid, or -errno.
  pid_t Spawn(const std::vector<std::string>& words) const {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t pid = -1;
    const int error =
        posix_spawn(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environ);
    return error == 0 ? pid : -error;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// A copy of the descriptor that the child's own descriptors cannot overwrite.
StatusOr<UniqueFd> OutOfTheWay(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, kOutOfTheWay));
  if (copy.valid()) return copy;
  if (errno != EINVAL && errno != EMFILE) return FromErrno("start launcher", "descriptor", errno);
  return ResourceExhausted(
      "start launcher: the limit on open files is too low, or reached: raise it (ulimit -n)");
}

/// Returns a socket to the launcher. It delivers the supervisor's lines, and ends when no process
/// is left. Uses posix_spawn with exactly the needed descriptors, default signals and an empty
/// mask; the only direct child has been reaped when this returns.
StatusOr<UniqueFd> LaunchSupervisor(const NodeSettings& settings, const LaunchRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> words, LauncherCommand(settings, request));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return FromErrno("start launcher", "socketpair", errno);
  }
  UniqueFd own(ends[0]);
  const UniqueFd theirs(ends[1]);
  PB_ASSIGN_OR_RETURN(const UniqueFd link, OutOfTheWay(theirs.get()));
  PB_ASSIGN_OR_RETURN(const UniqueFd lock, OutOfTheWay(request.lock_fd));
  SpawnPlan plan;
  plan.Descriptors(request.log_file, link.get(), lock.get());
  plan.DefaultSignals();
  const pid_t pid = plan.Spawn(words);
  if (pid < 0) return FromErrno("start launcher", words[0], -pid);
  // The launcher forks and ends at once. A program that reaps all of its children may already have
  // reaped it.
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return own;
}

constexpr long kStopMs = 2'000;
constexpr long kGoneMs = 20'000;  ///< for everything to end, frozen processes included
constexpr long kReadyTimeoutMs = 60'000;
constexpr int kLauncherPollMs = 50;
constexpr int kShareAttempts = 40;
constexpr std::size_t kMaxPeekedBytes = 1024;
constexpr std::size_t kMaxShownLogBytes = 64 << 10;
constexpr char kDoing[] = "run a cluster for this command";
constexpr char kSaidPayload[] = "patchbay.client/said";
constexpr char kHello[] = "folder ";
constexpr char kLeave = 'L';  // as workers/agent/launcher.h has it

bool GoOn(const EmbeddedOptions& options) {
  return !options.keep_waiting || options.keep_waiting();
}

/// The processes' log, with space reserved for their messages when they cannot start: a full disk
/// is then found here, or named in the log.
StatusOr<UniqueFd> ReserveLog(const std::string& path) {
  PB_ASSIGN_OR_RETURN(UniqueFd log, OpenFile(Folders::OfThisUser(), path, O_RDWR | O_CREAT, 0600));
  const bool reserved = fallocate(log.get(), FALLOC_FL_KEEP_SIZE, 0, kMaxShownLogBytes) == 0;
  // Some file systems cannot reserve space; the log then takes it as it grows.
  if (reserved || errno == EOPNOTSUPP || errno == ENOSYS) return log;
  return FromErrno("write", path, errno);
}

/// The error followed by the processes' messages, unless the user stopped them. The log's folder
/// may be removed by now.
Status WhyNoCluster(const Status& error, const UniqueFd& log) {
  std::string said(kMaxShownLogBytes, '\0');
  const ssize_t got = pread(log.get(), said.data(), said.size(), 0);
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (said.ends_with('\n')) said.pop_back();
  const std::string text = StrCat(kDoing, ": ", MessageOf(error));
  if (said.empty() || absl::IsCancelled(error)) return Status(error.code(), text);
  Status why(error.code(), StrCat(text, "\n", said));
  why.SetPayload(kSaidPayload, absl::Cord(said));
  return why;
}

Status MakeKeys(const std::string& folder, const std::string& address) {
  PB_ASSIGN_OR_RETURN(const control::Home home, control::Home::Open(folder + "/home"));
  PB_RETURN_IF_ERROR(home.ServerKey().status());
  const std::pair<std::string, control::Role> roles[] = {{"node", control::Role::kWorker},
                                                         {"operator", control::Role::kOperator}};
  for (const auto& [name, role] : roles) {
    control::Home::NewKeyRequest request;
    request.name = name;
    request.role = role;
    request.address = address;
    request.read = {"/"};
    request.write = {"/"};
    PB_ASSIGN_OR_RETURN(const control::KeyFile key, home.NewKey(request));
    PB_RETURN_IF_ERROR(control::WriteKeyFile(StrCat(folder, "/", name, ".key"), key));
  }
  return absl::OkStatus();
}

/// The abstract socket of the cluster that is shared under that name.
std::string ShareName(const std::string& share) {
  return StrCat("patchbay-shared-", getuid(), "-", Sha256Of(share).Hex().substr(0, 32));
}

/// A connection to the launcher of that name; invalid when there is none. PermissionDenied when the
/// name is another user's.
StatusOr<UniqueFd> ConnectShared(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return FromErrno(kDoing, "socket", errno);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return UniqueFd();
  ucred peer{};
  socklen_t peer_length = sizeof(peer);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_length) != 0 ||
      peer.uid != getuid()) {
    return PermissionDenied(kDoing, ": @", name, ": another user listens under this name");
  }
  return fd;
}

/// Adds the lines that arrive within `wait_ms` to `lines`; false once the other end is closed.
bool ReadLines(int link, int wait_ms, ReadyLines& lines) {
  pollfd wait{link, POLLIN, 0};
  if (poll(&wait, 1, wait_ms) <= 0) return true;
  char buffer[1024];
  const ssize_t got = recv(link, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (got > 0) lines.Append({buffer, static_cast<std::size_t>(got)});
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

EmbeddedCluster::EmbeddedCluster(UniqueFd link, std::string folder)
    : owner_(getpid()), link_(std::move(link)), folder_(std::move(folder)) {}

Status EmbeddedCluster::AwaitReady(const EmbeddedOptions& options) const {
  ReadyLines said;
  const TimeMs deadline = SteadyClock().NowMs() + kReadyTimeoutMs;
  while (true) {
    const bool open = ReadLines(link_.get(), kLauncherPollMs, said);
    if (said.Line("ready").has_value()) return absl::OkStatus();
    if (said.Line("taken").has_value()) return AlreadyExists("start cluster: shared");
    if (const auto failed = said.Line("failed ")) return Unavailable("start cluster: ", *failed);
    if (!open || said.TooLong()) return Unavailable("start cluster: the supervisor ended");
    if (!GoOn(options)) return Cancelled("start cluster: interrupted");
    if (SteadyClock().NowMs() > deadline) {
      return DeadlineExceeded("start cluster: not ready after ", kReadyTimeoutMs / 1000, " s");
    }
  }
}

StatusOr<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Launch(const EmbeddedOptions& options) {
  PB_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create(options.temporary));
  const std::string& root = folder.path();
  const std::string address = StrCat("ipc://@patchbay-", Hex64(RandomU64()));
  const Status prepared = MakeKeys(root, address);
  StatusOr<UniqueFd> log = prepared.ok() ? ReserveLog(root + "/log") : prepared;
  if (!log.ok()) {
    folder.Remove();
    return Annotate(log.status(), kDoing);
  }
  NodeSettings settings;
  settings.scheduler = SchedulerSettings{root + "/home", root + "/scheduler", address};
  settings.node_key = root + "/node.key";
  settings.state = root + "/agent";
  settings.cpus = options.cpus;
  settings.gpus = options.gpus;
  settings.stop_ms = kStopMs;
  settings.programs = options.programs;
  settings.may_take_burned_in = true;  // by the command, with the rights of the same user
  settings.functions = FunctionsOfUser(options.python);
  LaunchRequest request;
  request.folder = root;
  request.lock_fd = folder.lock_fd();
  request.log_file = root + "/log";
  request.stop_ms = kStopMs;
  if (!options.share.empty()) {
    request.share = ShareName(options.share);
    request.hello = kHello + root;
  }
  StatusOr<UniqueFd> link = LaunchSupervisor(settings, request);
  if (!link.ok()) {
    folder.Remove();
    return Annotate(link.status(), kDoing);
  }
  std::unique_ptr<EmbeddedCluster> cluster(new EmbeddedCluster(*std::move(link), root));
  const Status ready = cluster->AwaitReady(options);
  cluster->log_ = *std::move(log);
  if (ready.ok()) return cluster;
  return absl::IsAlreadyExists(ready) ? ready : WhyNoCluster(ready, cluster->log_);
}

StatusOr<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Join(const EmbeddedOptions& options) {
  PB_ASSIGN_OR_RETURN(UniqueFd link, ConnectShared(ShareName(options.share)));
  if (!link.valid()) return nullptr;
  ReadyLines said;
  while (!said.Line(kHello).has_value()) {
    if (!ReadLines(link.get(), kLauncherPollMs, said)) return nullptr;
    if (!GoOn(options)) return Cancelled("start cluster: interrupted");
  }
  std::unique_ptr<EmbeddedCluster> cluster(
      new EmbeddedCluster(std::move(link), *said.Line(kHello)));
  if (said.Line("ready").has_value()) return cluster;
  const Status ready = cluster->AwaitReady(options);
  if (!ready.ok()) return ready;
  return cluster;
}

std::string SaidBy(const Status& status) {
  const auto said = status.GetPayload(kSaidPayload);
  return said.has_value() ? std::string(*said) : std::string();
}

StatusOr<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Start(const EmbeddedOptions& options) {
  if (options.share.empty()) return Launch(options);
  for (int attempt = 0; attempt < kShareAttempts; ++attempt) {
    PB_ASSIGN_OR_RETURN(std::unique_ptr<EmbeddedCluster> joined, Join(options));
    if (joined != nullptr) return joined;
    StatusOr<std::unique_ptr<EmbeddedCluster>> launched = Launch(options);
    if (!absl::IsAlreadyExists(launched.status())) return launched;
    poll(nullptr, 0, kLauncherPollMs);  // the other may be ending just now
  }
  return Unavailable(kDoing, ": the cluster that is shared here never answered");
}

Status EmbeddedCluster::Alive() const {
  if (getpid() != owner_) {
    return FailedPrecondition("the cluster belongs to process ", owner_, ", not to its fork");
  }
  char text[kMaxPeekedBytes];
  const ssize_t got = recv(link_.get(), text, sizeof(text), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0) return absl::OkStatus();
  ReadyLines said;
  said.Append({text, static_cast<std::size_t>(got)});
  if (const auto failed = said.Line("failed ")) return WhyNoCluster(Unavailable(*failed), log_);
  if (got > 0) return absl::OkStatus();
  return Unavailable(
      "the cluster that ran for this command has ended: its supervisor was killed or failed");
}

EmbeddedCluster::~EmbeddedCluster() {
  if (getpid() != owner_) return;
  (void)send(link_.get(), &kLeave, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  ReadyLines said;
  const TimeMs deadline = SteadyClock().NowMs() + kGoneMs;
  while (!said.Line("left").has_value() && SteadyClock().NowMs() < deadline) {
    if (ReadLines(link_.get(), kLauncherPollMs, said)) continue;
    // The launcher removes the folder before it ends, unless it was killed.
    if (access(folder_.c_str(), F_OK) == 0) RemoveFolder(folder_);
    return;
  }
}

}  // namespace patchbay::client
