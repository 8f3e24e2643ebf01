// The page that a Prometheus on this machine reads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "scheduler/metrics/sample.h"

namespace patchbay::scheduler {

/// Serves /metrics at a place of HttpListener. It knows no users: every account of this machine may
/// read it.
class MetricsListener {
 public:
  /// Errors as of HttpListener::Open.
  static StatusOr<std::unique_ptr<MetricsListener>> Open(std::string_view place);
  virtual ~MetricsListener() = default;

  /// The address of the page.
  virtual const std::string& url() const = 0;
  /// From then on the page shows the sample. Does not wait for readers.
  virtual void Publish(Sample&& sample) = 0;
};

}  // namespace patchbay::scheduler
