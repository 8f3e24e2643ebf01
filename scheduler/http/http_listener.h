// Pages for browsers and Prometheus on this machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace patchbay::scheduler {

struct HttpRequest {
  std::string_view method, path;
  std::string session;  ///< value of the cookie kSessionCookie; "" = none
  /// It has a header that no page of another site can send.
  bool from_own_page = false;
};

struct HttpAnswer {
  int status = 200;
  std::string_view type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body = std::make_shared<const std::string>();
  std::string session = {};  ///< sets the cookie
};

inline constexpr char kSessionCookie[] = "patchbay_session", kOwnPageHeader[] = "X-Patchbay";
inline constexpr int kHttpOk = 200, kHttpUnauthorized = 401, kHttpForbidden = 403,
                     kHttpNotFound = 404, kHttpNotAllowed = 405, kHttpUnavailable = 503;

/// Serves http://ADDR:PORT from threads of its own. It speaks no TLS, so it listens on loopback
/// alone, and answers requests whose Host is another name with 403: a web page could not read it
/// through a name of its own that points here. Bodies of requests are not read.
class HttpListener {
 public:
  /// Called by several threads at once.
  using Respond = std::function<HttpAnswer(const HttpRequest&)>;

  /// `place` and `flag` as of control::ParsePagePlace, with its errors; Unavailable when it cannot
  /// listen.
  static StatusOr<std::unique_ptr<HttpListener>> Open(std::string_view flag, std::string_view place,
                                                      Respond respond);
  virtual ~HttpListener() = default;

  virtual const std::string& url() const = 0;  ///< "http://127.0.0.1:9178"
};

}  // namespace patchbay::scheduler
