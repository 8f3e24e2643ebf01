// The page that a Prometheus on this machine reads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "scheduler/metrics/sample.h"

namespace patchbay::scheduler {

/// Serves http://ADDR:PORT/metrics from threads of its own. It speaks no TLS and knows no users, so
/// it listens on loopback alone, and refuses requests whose Host is another name: a web page could
/// not read it through a name of its own that points here.
class MetricsListener {
 public:
  /// `place`: [ADDR:]PORT; ADDR is 127.0.0.1 unless given, PORT * is any free one. InvalidArgument
  /// for another form or an address that is not loopback; Unavailable when it cannot listen.
  static StatusOr<std::unique_ptr<MetricsListener>> Open(std::string_view place);
  virtual ~MetricsListener() = default;

  /// The address of the page.
  virtual const std::string& url() const = 0;
  /// From then on the page shows the sample. Does not wait for readers.
  virtual void Publish(Sample&& sample) = 0;
};

}  // namespace patchbay::scheduler
