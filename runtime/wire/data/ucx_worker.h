// The only file that opens UCX: a context and a worker that use exactly the transports of the
// network policy, and the loop that drives them. Workers find each other by addresses sent over the
// control plane: UCX has no listener. UCX types stay in this header and the .cc files that include
// it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ucp/api/ucp.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include "runtime/core/status.h"
#include "runtime/wire/data/network_policy.h"

namespace patchbay::data {

// The functions of UCX that are called here, found when the first UcxWorker opens. UCX's
// constructors replace the allocator's hooks and crash handlers of the process that loads it, so a
// process that sends nothing over a fabric must not have it.

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

/// Loads UCX once for the process, restores the program's handlers of crash signals and routes
/// UCX's messages to our log. FailedPrecondition where it is not installed or is another version.
/// From any thread.
Status LoadUcx();

/// Requires that LoadUcx returned OK.
const UcxLibrary& Ucx();

/// Unavailable for faults of a peer or the network, Internal otherwise; `doing` begins the text.
Status FromUcx(ucs_status_t status, std::string_view doing);

/// Larger addresses of UCX workers are refused: a host has tens of devices at most.
inline constexpr std::size_t kMaxUcxAddressBytes = 4096;
/// The bytes of an address in lower-case hex digits. InvalidArgument for text that
/// UcxWorker::address cannot produce; whether UCX accepts the address shows only when it connects.
StatusOr<std::vector<std::byte>> ParseUcxAddress(std::string_view hex);

/// Owns a UCP context and a single-threaded worker. Everything but Post is for the thread that
/// drives it.
class UcxWorker {
 public:
  static StatusOr<std::unique_ptr<UcxWorker>> Open(const Network& network);
  ~UcxWorker();

  ucp_worker_h worker() const { return worker_; }
  const TransportLimits& limits() const { return limits_; }
  /// Where other UCX workers reach this one, opaque; how it is written in text.
  const std::vector<std::byte>& address() const { return address_; }
  std::string AddressText() const;
  /// An endpoint to the UCX worker with this address, to be closed by CloseByForce. Once it failed,
  /// `on_error(arg, endpoint, status)` is called within Progress. For the address of a UCX worker
  /// that is connected to this one, returns the endpoint that its messages arrive over.
  StatusOr<ucp_ep_h> EndpointTo(std::span<const std::byte> address, ucp_err_handler_cb_t on_error,
                                void* arg);

  /// From any thread: runs `work` on the driving thread at its next turn.
  void Post(std::function<void()> work);
  /// Runs posted work and progresses until no operation advances. If none advanced at all, sleeps
  /// until one does, at most `wait_ms` (negative = for ever); otherwise returns, so that the caller
  /// can handle completions.
  void Progress(int wait_ms);

  /// The transport that the endpoint's lanes use, "tcp/lo". FailedPrecondition when the policy does
  /// not allow it; empty while it is not connected yet.
  StatusOr<std::string> TransportOf(ucp_ep_h endpoint) const;
  /// Closes by force and waits for the close; whatever ran over it completes with an error.
  void CloseByForce(ucp_ep_h endpoint);

 private:
  UcxWorker() = default;
  Status ReadAddress();
  std::vector<std::function<void()>> TakePosted();

  TransportLimits limits_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::vector<std::byte> address_;
  std::mutex posted_mu_;
  std::vector<std::function<void()>> posted_;  ///< guarded by posted_mu_
};

}  // namespace patchbay::data
