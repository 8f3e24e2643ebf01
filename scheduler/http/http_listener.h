// Pages for browsers and Prometheus.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "scheduler/http/http_request.h"

namespace patchbay::scheduler {

struct HttpAnswer {
  int status = 200;
  std::string_view type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body = std::make_shared<const std::string>();
  std::string session = {};  ///< sets the cookie
};

inline constexpr int kHttpOk = 200, kHttpMalformed = 400, kHttpUnauthorized = 401,
                     kHttpForbidden = 403, kHttpNotFound = 404, kHttpNotAllowed = 405,
                     kHttpTooLarge = 431, kHttpUnavailable = 503;

/// Serves http://ADDR:PORT, or https with a certificate, from threads of its own. A request has 2
/// s; after it the connection is kept for 15 s, as long as not many others are, if the reader has
/// sent nothing more and does not ask for its end. Requests whose Host is neither this machine's
/// loopback nor in the certificate are answered with 403: a web page could not read it through a
/// name of its own that points here. Bodies of requests are not read.
class HttpListener {
 public:
  /// Called by several threads at once.
  using Respond = std::function<HttpAnswer(const HttpRequest&)>;

  /// `place` and `flag` as of control::ParsePagePlace, with its errors; `tls`: file as of
  /// Certificate::Read, with its errors, "" = http on loopback alone. Unavailable when it cannot
  /// listen.
  static StatusOr<std::unique_ptr<HttpListener>> Open(std::string_view flag, std::string_view place,
                                                      const std::string& tls, Respond respond);
  virtual ~HttpListener() = default;

  virtual const std::string& url() const = 0;  ///< "http://127.0.0.1:9178"
};

}  // namespace patchbay::scheduler
