// The head of an HTTP/1 request.
#pragma once

#include <optional>
#include <string_view>

namespace patchbay::scheduler {

inline constexpr char kSessionCookie[] = "patchbay_session", kOwnPageHeader[] = "X-Patchbay";

/// Views of the text that it was parsed from.
struct HttpRequest {
  std::string_view method, path;
  std::string_view host;     ///< without the port; "" = none
  std::string_view session;  ///< value of the cookie kSessionCookie; "" = none
  std::string_view token;    ///< TOKEN of "Authorization: Bearer TOKEN"; "" = none
  /// It has a header that no page of another site can send.
  bool from_own_page = false;
  /// Another request may follow on the connection: HTTP/1.1, without a body and "Connection:
  /// close".
  bool may_continue = true;
};

/// `head` ends with the empty line. Nothing when it is malformed: it is as RFC 9112 has it, without
/// what that allows for old clients (bare line feeds, folded lines), and has one Host at most.
std::optional<HttpRequest> ParseRequest(std::string_view head);

}  // namespace patchbay::scheduler
