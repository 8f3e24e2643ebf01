#include "runtime/wire/data/ucx_library.h"

#include <csignal>
#include <cstdarg>
#include <cstdio>

#include <dlfcn.h>

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
#define PATCHBAY_UCX_FIND(name)                                                           \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name));     \
  if (functions.name == nullptr) {                                                        \
    return absl::FailedPreconditionError("load ucx: libucp.so.0 has no function " #name); \
  }
  PATCHBAY_UCX_FUNCTIONS(PATCHBAY_UCX_FIND)
#undef PATCHBAY_UCX_FIND
  return absl::OkStatus();
}

Loaded Load() {
  Loaded loaded;
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    loaded.status = absl::FailedPreconditionError(StrCat("load ucx: ", dlerror()));
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

}  // namespace

Status LoadUcx() { return Once().status; }

const UcxLibrary& Ucx() { return Once().functions; }

}  // namespace patchbay::data
