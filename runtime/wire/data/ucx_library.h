// The functions of UCX that are called here, found when the first UcxWorker opens. UCX's
// constructors replace the allocator's hooks and crash handlers of the process that loads it, so a
// process that sends nothing over a fabric must not have it.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include "runtime/core/status.h"

namespace patchbay::data {

#define PATCHBAY_UCX_FUNCTIONS(ROW)   \
  ROW(ucp_am_recv_data_nbx)           \
  ROW(ucp_am_send_nbx)                \
  ROW(ucp_cleanup)                    \
  ROW(ucp_config_modify)              \
  ROW(ucp_config_read)                \
  ROW(ucp_config_release)             \
  ROW(ucp_ep_close_nbx)               \
  ROW(ucp_ep_create)                  \
  ROW(ucp_ep_print_info)              \
  ROW(ucp_init_version)               \
  ROW(ucp_request_check_status)       \
  ROW(ucp_request_free)               \
  ROW(ucp_worker_arm)                 \
  ROW(ucp_worker_create)              \
  ROW(ucp_worker_destroy)             \
  ROW(ucp_worker_get_address)         \
  ROW(ucp_worker_get_efd)             \
  ROW(ucp_worker_progress)            \
  ROW(ucp_worker_release_address)     \
  ROW(ucp_worker_set_am_recv_handler) \
  ROW(ucp_worker_signal)              \
  ROW(ucs_debug_disable_signal)       \
  ROW(ucs_log_push_handler)           \
  ROW(ucs_status_string)

/// Members have the names of the functions they point to.
struct UcxLibrary {
#define PATCHBAY_UCX_MEMBER(name) decltype(&::name) name = nullptr;
  PATCHBAY_UCX_FUNCTIONS(PATCHBAY_UCX_MEMBER)
#undef PATCHBAY_UCX_MEMBER
};

/// Loads UCX once for the process, gives crash signals back to the program and sends UCX's words to
/// our log. FailedPrecondition where it is not installed or is another version. From any thread.
Status LoadUcx();

/// Requires that LoadUcx returned OK.
const UcxLibrary& Ucx();

}  // namespace patchbay::data
