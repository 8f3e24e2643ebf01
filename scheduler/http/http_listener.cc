#include "scheduler/http/http_listener.h"

#include <array>
#include <chrono>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include <civetweb.h>
#include <netdb.h>
#include <sys/socket.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/address.h"

namespace patchbay::scheduler {
namespace {

constexpr std::chrono::milliseconds kKnockEvery{10};
constexpr std::size_t kMostCookieBytes = 128;
/// Nothing but this server's own files may run, be drawn or be asked; nobody may frame them.
constexpr std::string_view kSafeguards =
    "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\nConnection: close\r\n";

/// Host of "Host: HOST[:PORT]".
std::string_view HostIn(const char* header) {
  std::string_view host = header == nullptr ? "" : header;
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

HttpRequest RequestOf(const mg_connection* connection) {
  const mg_request_info& info = *mg_get_request_info(connection);
  HttpRequest request;
  request.method = info.request_method;
  if (info.local_uri != nullptr) request.path = info.local_uri;
  request.from_own_page = mg_get_header(connection, kOwnPageHeader) != nullptr;
  std::array<char, kMostCookieBytes> cookie{};
  const char* const cookies = mg_get_header(connection, "Cookie");
  if (cookies != nullptr &&
      mg_get_cookie(cookies, kSessionCookie, cookie.data(), cookie.size()) > 0) {
    request.session = cookie.data();
  }
  return request;
}

class Listener final : public HttpListener {
 public:
  explicit Listener(Respond respond) : respond_(std::move(respond)) {}
  ~Listener() override;

  Status Listen(std::string_view flag, const control::Address& address);
  const std::string& url() const override { return url_; }

 private:
  static Listener& Of(const mg_connection* connection) {
    return *static_cast<Listener*>(mg_get_user_data(mg_get_context(connection)));
  }
  static int Answer(mg_connection* connection);
  static int TakeMessage(const mg_connection* connection, const char* message);

  const Respond respond_;
  mg_context* context_ = nullptr;
  std::string host_, port_;
  std::string url_;
  std::mutex start_mutex_;
  std::string start_error_;  // guarded by start_mutex_
};

Status Listener::Listen(std::string_view flag, const control::Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  const std::string host = v6 ? StrCat("[", address.host, "]") : address.host;
  const std::string port = StrCat(host, ":", address.port);
  const char* options[] = {
      "listening_ports",    port.c_str(), "num_threads", "4", "max_request_size", "8192",
      "request_timeout_ms", "2000",       nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = Answer;
  callbacks.log_message = TakeMessage;
  context_ = mg_start(&callbacks, this, options);
  mg_server_port bound{};
  if (context_ == nullptr || mg_get_server_ports(context_, 1, &bound) != 1) {
    const std::lock_guard lock(start_mutex_);
    return Unavailable(flag, ": listen on ", port, ": ", start_error_);
  }
  host_ = address.host;
  port_ = StrCat(bound.port);
  url_ = StrCat("http://", host, ":", port_);
  return absl::OkStatus();
}

/// Connects, and leaves.
void Knock(const std::string& host, const std::string& port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return;
  const UniqueFd knocking(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::ignore = connect(knocking.get(), found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
}

/// The library looks whether it is to stop when somebody connects, and else every 2 s.
Listener::~Listener() {
  if (context_ == nullptr) return;
  const std::jthread knocks([this](const std::stop_token& stopped) {
    while (!stopped.stop_requested()) {
      Knock(host_, port_);
      std::this_thread::sleep_for(kKnockEvery);
    }
  });
  mg_stop(context_);
}

/// Messages of the library are for the one who starts it; those about readers say nothing.
int Listener::TakeMessage(const mg_connection* connection, const char* message) {
  if (connection == nullptr) return 1;
  Listener& listener = Of(connection);
  const std::lock_guard lock(listener.start_mutex_);
  if (listener.start_error_.empty()) listener.start_error_ = message;
  return 1;
}

int Listener::Answer(mg_connection* connection) {
  const std::string_view host = HostIn(mg_get_header(connection, "Host"));
  HttpAnswer answer;
  if (host == "localhost" || control::IsLoopback(host)) {
    answer = Of(connection).respond_(RequestOf(connection));
  } else {
    answer.status = kHttpForbidden;
  }
  const std::string cookie = answer.session.empty()
                                 ? ""
                                 : StrCat("Set-Cookie: ", kSessionCookie, "=", answer.session,
                                          "; HttpOnly; SameSite=Strict; Path=/\r\n");
  const std::string head =
      StrCat("HTTP/1.1 ", answer.status, " ", mg_get_response_code_text(connection, answer.status),
             "\r\nContent-Type: ", answer.type, "\r\nContent-Length: ", answer.body->size(), "\r\n",
             cookie, kSafeguards, "\r\n");
  mg_write(connection, head.data(), head.size());
  mg_write(connection, answer.body->data(), answer.body->size());
  return answer.status;
}

}  // namespace

StatusOr<std::unique_ptr<HttpListener>> HttpListener::Open(std::string_view flag,
                                                           std::string_view place,
                                                           Respond respond) {
  PB_ASSIGN_OR_RETURN(const control::Address address, control::ParsePagePlace(flag, place));
  auto listener = std::make_unique<Listener>(std::move(respond));
  PB_RETURN_IF_ERROR(listener->Listen(flag, address));
  return listener;
}

}  // namespace patchbay::scheduler
