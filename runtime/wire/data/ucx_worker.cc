#include "runtime/wire/data/ucx_worker.h"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <dlfcn.h>
#include <poll.h>

#include "absl/strings/escaping.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"

namespace patchbay::data {
namespace {

struct Loaded {
  UcxLibrary functions;
  Status status;
};

ucs_log_func_rc_t ToOurLog(const char*, unsigned, const char*, ucs_log_level_t level,
                           const ucs_log_component_config_t*, const char* format, va_list list) {
  if (level > UCS_LOG_LEVEL_WARN) return UCS_LOG_FUNC_RC_STOP;
  char text[512];
  std::vsnprintf(text, sizeof(text), format, list);
  // UCX calls a peer that went away a warning or an error; for us it is an event like others.
  Log(level == UCS_LOG_LEVEL_FATAL ? LogSeverity::kError : LogSeverity::kDebug,
      StrCat("ucx: ", text));
  return UCS_LOG_FUNC_RC_STOP;
}

Status Find(void* library, UcxLibrary& functions) {
#define PATCHBAY_UCX_FIND(name)                                                       \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name)); \
  if (functions.name == nullptr) {                                                    \
    return FailedPrecondition("load ucx: libucp.so.0 has no function " #name);        \
  }
  PATCHBAY_UCX_FUNCTIONS(PATCHBAY_UCX_FIND)
#undef PATCHBAY_UCX_FIND
  return absl::OkStatus();
}

Loaded Load() {
  Loaded loaded;
  // UCX sees host memory alone, so it need not patch malloc and mmap, which MemoryDenyWriteExecute
  // refuses.
  setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 0);
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    loaded.status = FailedPrecondition("load ucx: ", dlerror());
    return loaded;
  }
  loaded.status = Find(library, loaded.functions);
  if (!loaded.status.ok()) return loaded;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    loaded.functions.ucs_debug_disable_signal(signal);
  }
  loaded.functions.ucs_log_push_handler(&ToOurLog);
  return loaded;
}

const Loaded& Once() {
  static const Loaded loaded = Load();  // its threads and hooks end with the process
  return loaded;
}

struct ConfigDeleter {
  void operator()(ucp_config_t* config) const { Ucx().ucp_config_release(config); }
};

StatusOr<std::unique_ptr<ucp_config_t, ConfigDeleter>> MakeConfig(const TransportLimits& limits) {
  ucp_config_t* raw = nullptr;
  const ucs_status_t read = Ucx().ucp_config_read(nullptr, nullptr, &raw);
  if (read != UCS_OK) return FromUcx(read, "read ucx config");
  std::unique_ptr<ucp_config_t, ConfigDeleter> config(raw);
  const std::pair<const char*, std::string> required[] = {
      {"TLS", limits.transports},
      {"NET_DEVICES", limits.devices},
      {"KEEPALIVE_INTERVAL", "2s"},
      {"MEMTYPE_CACHE", "n"},
  };
  for (const auto& [name, value] : required) {
    const ucs_status_t set = Ucx().ucp_config_modify(config.get(), name, value.c_str());
    if (set != UCS_OK) return FromUcx(set, StrCat("set ucx option ", name));
  }
  return config;
}

}  // namespace

Status LoadUcx() { return Once().status; }

const UcxLibrary& Ucx() { return Once().functions; }

Status FromUcx(ucs_status_t status, std::string_view doing) {
  if (status == UCS_OK) return absl::OkStatus();
  const std::string text = StrCat(doing, ": ucx: ", Ucx().ucs_status_string(status));
  switch (status) {
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_CANCELED:
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_BUSY:
      return Unavailable(text);
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_EXCEEDS_LIMIT:
      return ResourceExhausted(text);
    default:
      return Internal(text);
  }
}

StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::Open(const Network& network) {
  PB_RETURN_IF_ERROR(LoadUcx());
  auto made = std::unique_ptr<UcxWorker>(new UcxWorker());
  PB_ASSIGN_OR_RETURN(made->limits_, LimitsOf(network));
  PB_ASSIGN_OR_RETURN(const auto config, MakeConfig(made->limits_));
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 0;
  PB_RETURN_IF_ERROR(FromUcx(
      Ucx().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config.get(), &made->context_),
      StrCat("start ucx: ", made->limits_.transports, " over ", made->limits_.devices)));
  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  PB_RETURN_IF_ERROR(FromUcx(
      Ucx().ucp_worker_create(made->context_, &worker_params, &made->worker_), "make ucx worker"));
  PB_RETURN_IF_ERROR(FromUcx(Ucx().ucp_worker_get_efd(made->worker_, &made->event_fd_),
                             "get ucx event descriptor"));
  PB_RETURN_IF_ERROR(made->ReadAddress());
  return made;
}

Status UcxWorker::ReadAddress() {
  ucp_address_t* own = nullptr;
  std::size_t size = 0;
  PB_RETURN_IF_ERROR(
      FromUcx(Ucx().ucp_worker_get_address(worker_, &own, &size), "read ucx address"));
  const auto* bytes = reinterpret_cast<const std::byte*>(own);
  address_.assign(bytes, bytes + size);
  Ucx().ucp_worker_release_address(worker_, own);
  if (size <= kMaxUcxAddressBytes) return absl::OkStatus();
  return Internal("read ucx address: it has ", size, " bytes");
}

std::string UcxWorker::AddressText() const {
  const std::string_view bytes = AsText(address_);
  return absl::BytesToHexString({bytes.data(), bytes.size()});
}

StatusOr<ucp_ep_h> UcxWorker::EndpointTo(std::span<const std::byte> address,
                                         ucp_err_handler_cb_t on_error, void* arg) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = on_error;
  params.err_handler.arg = arg;
  ucp_ep_h endpoint = nullptr;
  PB_RETURN_IF_ERROR(FromUcx(Ucx().ucp_ep_create(worker_, &params, &endpoint), "connect"));
  return endpoint;
}

StatusOr<std::vector<std::byte>> ParseUcxAddress(std::string_view hex) {
  const bool is_hex = hex.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!is_hex || hex.empty() || hex.size() % 2 != 0 || hex.size() > 2 * kMaxUcxAddressBytes) {
    return InvalidArgument("parse address: not the address of a UCX worker");
  }
  const std::string bytes = absl::HexStringToBytes({hex.data(), hex.size()});
  const auto parsed = std::as_bytes(std::span(bytes));
  return std::vector<std::byte>(parsed.begin(), parsed.end());
}

UcxWorker::~UcxWorker() {
  if (worker_ != nullptr) Ucx().ucp_worker_destroy(worker_);
  if (context_ != nullptr) Ucx().ucp_cleanup(context_);
}

void UcxWorker::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(posted_mu_);
    posted_.push_back(std::move(work));
  }
  Ucx().ucp_worker_signal(worker_);
}

std::vector<std::function<void()>> UcxWorker::TakePosted() {
  const std::lock_guard lock(posted_mu_);
  return std::exchange(posted_, {});
}

void UcxWorker::Progress(int wait_ms) {
  auto posted = TakePosted();
  for (auto& work : posted) work();
  bool moved = !posted.empty();
  while (Ucx().ucp_worker_progress(worker_) != 0) moved = true;
  // Arming after progress ran dry; BUSY means that something came in between.
  if (moved || wait_ms == 0 || Ucx().ucp_worker_arm(worker_) != UCS_OK) return;
  {
    const std::lock_guard lock(posted_mu_);
    if (!posted_.empty()) return;
  }
  pollfd watched{event_fd_, POLLIN, 0};
  poll(&watched, 1, wait_ms);
}

StatusOr<std::string> UcxWorker::TransportOf(ucp_ep_h endpoint) const {
  char* text = nullptr;
  std::size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return ResourceExhausted("describe endpoint: no memory");
  Ucx().ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  // Lines such as "#   lane[0]:  0:tcp/lo.0 md[0] -> md[0]/tcp/sysdev[255] am am_bw#0".
  std::string found;
  std::string_view rest(text, size);
  for (std::size_t at = rest.find("lane["); at != std::string_view::npos; at = rest.find("lane[")) {
    rest.remove_prefix(at);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size());
    const std::size_t slash = line.find('/');
    if (slash == std::string_view::npos) continue;
    const std::size_t begin = line.rfind(':', slash) + 1;
    const std::size_t end = line.find_first_of(" .", slash);
    const std::string lane(line.substr(begin, end - begin));
    const bool allowed = lane.starts_with(limits_.transports) &&
                         lane.find(limits_.devices, slash - begin) != std::string::npos;
    if (!allowed) {
      return FailedPrecondition("check transport: ucx chose ", lane, ", allowed is ",
                                limits_.transports, " over ", limits_.devices);
    }
    found = lane;
  }
  return found;
}

void UcxWorker::CloseByForce(ucp_ep_h endpoint) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = Ucx().ucp_ep_close_nbx(endpoint, &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (Ucx().ucp_request_check_status(request) == UCS_INPROGRESS)
    Ucx().ucp_worker_progress(worker_);
  Ucx().ucp_request_free(request);
}

}  // namespace patchbay::data
