// The page that Prometheus reads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "scheduler/metrics/sample.h"

namespace patchbay::scheduler {

/// Serves /metrics at a place of HttpListener. It knows no users: who has the token may read it, or
/// every account of this machine where there is none.
class MetricsListener {
 public:
  static constexpr std::size_t kFewestTokenBytes = 16;

  struct Options {
    std::string place;
    std::string tls;         ///< certificate of the page; "" = http
    std::string token_file;  ///< as of control::ReadPrivateFile; "" = no token
  };
  /// Errors as of HttpListener::Open, and of the token's file; a page beyond loopback needs both.
  static StatusOr<std::unique_ptr<MetricsListener>> Open(const Options& options);
  virtual ~MetricsListener() = default;

  /// The address of the page.
  virtual const std::string& url() const = 0;
  /// From then on the page shows the sample. Does not wait for readers.
  virtual void Publish(Sample&& sample) = 0;
};

}  // namespace patchbay::scheduler
