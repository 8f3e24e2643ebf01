#include "workers/functions/function_host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/executable.h"
#include "workers/functions/function_limits.h"
#include "workers/functions/host_text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace patchbay::workers {
namespace {

constexpr double kLoadLimitS = 120;  ///< imports of large libraries from a slow disk
constexpr int kWaitMs = 100;
constexpr int kCannotExecute = 127;
/// Descriptors of the host process.
constexpr int kLinkFd = 3, kMemoryFd = 4, kSetupFd = 5, kFirstSpareFd = 16;
/// Reads the host's code from the setup and runs it.
constexpr char kBootstrap[] =
    "import os,struct;n,=struct.unpack('<I',os.pread(5,4,0));"
    "exec(compile(os.pread(5,n,4),'patchbay function host','exec'))";

/// Little-endian, as function_host.py reads it.
struct Request {
  std::uint32_t function = 0, count = 0;
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0, unused = 0;
  std::array<std::uint64_t, kMaxCallPatches> ordinals{};
};
static_assert(sizeof(Request) == 24 + 8 * kMaxCallPatches);

struct Reply {
  std::int32_t failed = 0;
  std::uint32_t text_bytes = 0;
  std::int64_t cpu_ns = 0;
  std::array<char, 4080> text{};
};
static_assert(sizeof(Reply) == 4096);

/// A sealed file without a name: its bytes can no longer change.
StatusOr<UniqueFd> Sealed(std::string_view bytes) {
  UniqueFd file(memfd_create("patchbay-functions", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return FromErrno("run own function", "memory file", errno);
  PB_RETURN_IF_ERROR(
      WriteAt(file.get(), 0, std::as_bytes(std::span(bytes.data(), bytes.size())), "memory file"));
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) == 0) return file;
  return FromErrno("run own function", "seal memory file", errno);
}

void AppendBlock(std::string_view bytes, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>(bytes.size() >> shift & 0xFF));
  }
  out += bytes;
}

/// Blocks, each after its length: the host's code, the description, the files of the functions.
std::string SetupOf(const std::vector<FunctionSource>& sources, const SharedPatches& patches,
                    bool is_users_own) {
  Json functions = Json::array();
  for (const FunctionSource& source : sources) {
    functions.push_back({{"name", source.function.function},
                         {"file", source.file.path},
                         {"at", plan::NameOf(source.function.stage)},
                         {"options", source.function.options}});
  }
  const Json setup = {{"functions", functions},
                      {"shape", patches.shape},
                      {"capacity", patches.capacity},
                      {"pixels", {{"dtype", NameOf(patches.pixels)}, {"at", patches.pixels_at}}},
                      {"values", {{"dtype", NameOf(DType::kFloat32)}, {"at", patches.values_at}}},
                      {"mask", patches.mask_at},
                      {"imports_beside", is_users_own}};
  std::string text;
  AppendBlock(kFunctionHost, text);
  AppendBlock(DumpJson(setup), text);
  for (const FunctionSource& source : sources) AppendBlock(source.file.bytes, text);
  return text;
}

std::string_view PathVariable() {
  constexpr std::string_view kName = "PATH=";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with(kName)) return text.substr(kName.size());
  }
  return "";
}

/// Whether the kernel would start another program for it, which a function's process may not.
bool IsScript(const std::string& program) {
  const Folders beside(
      {.read = {program.substr(0, std::max<std::size_t>(program.rfind('/'), 1))}, .write = {}});
  const StatusOr<UniqueFd> file = OpenFile(beside, program, O_RDONLY);
  char head[2] = {};
  return file.ok() && pread(file->get(), head, sizeof(head), 0) == sizeof(head) &&
         std::string_view(head, sizeof(head)) == "#!";
}

/// One thread for the libraries that would take every core; of a user's own process the rest of the
/// environment, else hardly any.
std::vector<std::string> EnvironmentOf(bool is_users_own) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool is_kept = is_users_own && text.find("_NUM_THREADS=") == std::string_view::npos;
    if (is_kept || text.starts_with("PATH=")) variables.emplace_back(text);
  }
  for (const char* library : {"OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB"}) {
    variables.push_back(StrCat(library, "_NUM_THREADS=1"));
  }
  variables.emplace_back("PYTHONHASHSEED=0");
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Everything that the child needs, made before the fork.
struct Becoming {
  char* const* argv;
  char* const* environment;
  int link, memory, setup, said, nothing;
  std::uint64_t memory_bytes;
  SyscallFilter* filter;
  pid_t parent;
};

[[noreturn]] void Fail(const char* doing) {
  const char* reason = strerrordesc_np(errno);
  for (const char* piece : {doing, ": ", reason, "\n"}) {
    if (write(STDERR_FILENO, piece, std::strlen(piece)) < 0) break;
  }
  _exit(kCannotExecute);
}

/// Only async-signal-safe calls: the worker has threads.
[[noreturn]] void Become(const Becoming& with) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != with.parent) _exit(kCannotExecute);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) {
    if (signal_number != SIGKILL && signal_number != SIGSTOP) signal(signal_number, SIG_DFL);
  }
  signal(SIGINT, SIG_IGN);  // Ctrl-C on the terminal is for the command
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Out of the way of the numbers that they get.
  const int from[] = {with.nothing, with.nothing, with.said, with.link, with.memory, with.setup};
  int high[std::size(from)];
  for (std::size_t i = 0; i < std::size(from); ++i) {
    high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, kFirstSpareFd);
  }
  for (std::size_t i = 0; i < std::size(from); ++i) {
    if (high[i] < 0 || dup2(high[i], static_cast<int>(i)) < 0) Fail("pass descriptors");
  }
  static_assert(kLinkFd == 3 && kMemoryFd == 4 && kSetupFd == 5);
  syscall(SYS_close_range, kSetupFd + 1, ~0U, 0);  // all are close-on-exec as well
  if (!LimitResources(with.memory_bytes)) Fail("limit resources");
  if (!with.filter->Install()) Fail("filter system calls");
  execve(with.argv[0], with.argv, with.environment);
  Fail(with.argv[0]);
}

std::string HowItEnded(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return StrCat("exit code ", WEXITSTATUS(wait_status));
  const char* name = sigdescr_np(WTERMSIG(wait_status));
  return StrCat("signal ", WTERMSIG(wait_status), " (", name != nullptr ? name : "unknown", ")");
}

/// "key 'augment[1].python': cutout", or without the key where the config's places are not known.
std::string LabelOf(const FunctionSource& source) {
  const std::string& key = source.function.key;
  return StrCat(key.empty() ? "own function" : StrCat("key '", key, "':"), " ",
                source.function.function);
}

Status AtFunction(const FunctionSource& source, std::string_view cause) {
  return InvalidArgument(LabelOf(source), ": ", cause);
}

}  // namespace

StatusOr<std::unique_ptr<FunctionHost>> FunctionHost::Start(const FunctionPolicy& policy,
                                                            std::vector<FunctionSource> sources,
                                                            const SharedPatches& patches,
                                                            const memory::MemfdBlock& memory,
                                                            const WhileWaiting& waiting) {
  PB_ASSIGN_OR_RETURN(const UniqueFd setup, Sealed(SetupOf(sources, patches, policy.is_users_own)));
  std::unique_ptr<FunctionHost> process(new FunctionHost(std::move(sources)));
  PB_RETURN_IF_ERROR(process->Launch(policy, setup.get(), memory.fd()));
  const StatusOr<std::string> ready = process->Await(kLoadLimitS, waiting);
  if (absl::IsDeadlineExceeded(ready.status())) {
    return AtFunction(process->sources_[0], "its file did not load in 120 s");
  }
  if (absl::IsUnavailable(ready.status())) {
    const Status ended = Annotate(process->Ended(0), StrCat("start ", policy.interpreter));
    return absl::IsResourceExhausted(ended) ? ended
                                            : WithCode(ended, absl::StatusCode::kInvalidArgument);
  }
  PB_RETURN_IF_ERROR(ready.status());
  PB_ASSIGN_OR_RETURN(const Json said, ParseJson(*ready, "own function: its interpreter"));
  if (said.contains("error")) {
    const std::size_t index =
        std::min<std::size_t>(said.value("function", std::size_t{0}), process->sources_.size() - 1);
    return AtFunction(process->sources_[index], said["error"].get<std::string>());
  }
  process->versions_ = {said.value("python", ""), said.value("numpy", "")};
  return process;
}

Status FunctionHost::Launch(const FunctionPolicy& policy, int setup, int memory) {
  const StatusOr<std::string> program = ProgramInPath(policy.interpreter, PathVariable());
  if (!program.ok()) {
    return AtFunction(sources_[0], StrCat("no interpreter ", policy.interpreter,
                                          " in PATH: PATCHBAY_PYTHON names one"));
  }
  if (IsScript(*program)) {
    return AtFunction(
        sources_[0], StrCat(*program, " is a script, and own functions start no program: ",
                            policy.is_users_own ? "PATCHBAY_PYTHON" : "functions.python",
                            " names the interpreter, as `import sys; print(sys.executable)` does"));
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return FromErrno("run own function", "socket pair", errno);
  }
  link_ = UniqueFd(ends[0]);
  const UniqueFd theirs(ends[1]);
  said_ = UniqueFd(memfd_create("patchbay-function-said", MFD_CLOEXEC));
  if (!said_.valid()) return FromErrno("run own function", "memory file", errno);
  const Folders devices({.read = {"/dev"}, .write = {"/dev"}});
  PB_ASSIGN_OR_RETURN(const UniqueFd nothing, OpenFile(devices, "/dev/null", O_RDWR));
  std::vector<std::string> words = {*program};
  if (!policy.is_users_own) words.emplace_back("-I");
  for (const char* word : {"-B", "-X", "faulthandler", "-c", kBootstrap}) words.emplace_back(word);
  std::vector<std::string> variables = EnvironmentOf(policy.is_users_own);
  const std::vector<char*> argv = Pointers(words), environment = Pointers(variables);
  std::uint64_t memory_mib = 0;
  for (const FunctionSource& each : sources_) {
    memory_mib = std::max(memory_mib, each.function.memory_mib);
  }
  SyscallFilter filter = SyscallFilter::For(argv[0]);
  const Becoming with{argv.data(), environment.data(), theirs.get(),     memory,  setup,
                      said_.get(), nothing.get(),      memory_mib << 20, &filter, getpid()};
  pid_ = fork();
  if (pid_ < 0) return FromErrno("run own function", "fork", errno);
  if (pid_ == 0) Become(with);
  return absl::OkStatus();
}

FunctionHost::~FunctionHost() { Kill(); }

void FunctionHost::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  link_.Close();
}

/// The last line on its standard error.
std::string FunctionHost::Said() const {
  std::string text(kMaxSaidBytes, '\0');
  const ssize_t got = pread(said_.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

/// Buries the process.
Status FunctionHost::Ended(std::size_t index) {
  int wait_status = 0;
  while (pid_ > 0 && waitpid(pid_, &wait_status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  link_.Close();
  const std::string said = Said();
  const std::string text =
      StrCat(LabelOf(sources_[index]), ": its process ended: ", HowItEnded(wait_status),
             said.empty() ? "" : ": ", said);
  const bool is_killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  return is_killed ? ResourceExhausted(text) : Unavailable(text);
}

/// The text of the next reply. DeadlineExceeded and errors of `waiting` kill the process;
/// Unavailable: it has ended. InvalidArgument: the function failed, with its text.
StatusOr<std::string> FunctionHost::Await(double limit_s, const WhileWaiting& waiting) {
  const std::int64_t end_ns = SteadyNowNs() + static_cast<std::int64_t>(limit_s * 1e9);
  pollfd wait{link_.get(), POLLIN, 0};
  while (poll(&wait, 1, kWaitMs) <= 0) {
    Status status = waiting ? waiting() : absl::OkStatus();
    if (status.ok() && SteadyNowNs() > end_ns) status = DeadlineExceeded("time limit");
    if (status.ok()) continue;
    Kill();
    return status;
  }
  Reply reply;
  const ssize_t got = recv(link_.get(), &reply, sizeof(reply), 0);
  if (got != static_cast<ssize_t>(sizeof(reply))) {
    if (pid_ > 0) kill(pid_, SIGKILL);  // it has ended, or speaks another language
    return Unavailable("its process ended");
  }
  cpu_ns_ += std::max<std::int64_t>(reply.cpu_ns, 0);
  const std::size_t bytes = std::min<std::size_t>(reply.text_bytes, reply.text.size());
  std::string text(reply.text.data(), bytes);
  if (reply.failed == 0) return text;
  return InvalidArgument(text);
}

Status FunctionHost::Call(std::size_t index, const CallKey& key, const WhileWaiting& waiting) {
  PB_CHECK(alive() && !key.ordinals.empty() && key.ordinals.size() <= kMaxCallPatches);
  Request request;
  request.function = static_cast<std::uint32_t>(index);
  request.count = static_cast<std::uint32_t>(key.ordinals.size());
  request.seed = key.seed;
  request.epoch = key.epoch;
  std::copy(key.ordinals.begin(), key.ordinals.end(), request.ordinals.begin());
  const FunctionSource& source = sources_[index];
  if (send(link_.get(), &request, sizeof(request), MSG_NOSIGNAL) < 0) return Ended(index);
  const StatusOr<std::string> reply = Await(source.function.time_limit_s, waiting);
  if (reply.ok()) return absl::OkStatus();
  if (absl::IsUnavailable(reply.status()) && pid_ > 0) return Ended(index);
  if (absl::IsDeadlineExceeded(reply.status())) {
    return AtFunction(source,
                      StrCat("it took longer than time_limit_s, ", source.function.time_limit_s,
                             " s, for ", key.ordinals.size(), " patches"));
  }
  if (absl::IsInvalidArgument(reply.status())) return AtFunction(source, MessageOf(reply.status()));
  return reply.status();
}

}  // namespace patchbay::workers
