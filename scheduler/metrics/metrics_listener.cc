#include "scheduler/metrics/metrics_listener.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include <arpa/inet.h>
#include <civetweb.h>
#include <netdb.h>
#include <sys/socket.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/address.h"
#include "scheduler/metrics/exposition.h"

namespace patchbay::scheduler {
namespace {

constexpr char kPath[] = "/metrics";
constexpr std::chrono::milliseconds kKnockEvery{10};
constexpr int kOk = 200, kForbidden = 403, kNotFound = 404, kNotAllowed = 405;

bool IsLoopback(std::string_view host) {
  const std::string text(host);
  in_addr v4{};
  return host == "::1" || (inet_pton(AF_INET, text.c_str(), &v4) == 1 && host.starts_with("127."));
}

StatusOr<control::Address> ParsePlace(std::string_view place) {
  const bool has_host = place.find(':') != std::string_view::npos;
  StatusOr<control::Address> address =
      control::ParseAddress(StrCat("tcp://", has_host ? "" : "127.0.0.1:", place));
  if (!address.ok()) {
    return InvalidArgument("--metrics ", place, ": expected [ADDR:]PORT, such as 9178");
  }
  if (IsLoopback(address->host)) return address;
  return InvalidArgument("--metrics ", place,
                         ": the page has neither TLS nor a password, so it is for this machine "
                         "alone: give a loopback address, and let a proxy with both, or a "
                         "Prometheus agent of this machine, pass it on");
}

/// Host of "Host: HOST[:PORT]".
std::string_view HostIn(const char* header) {
  std::string_view host = header == nullptr ? "" : header;
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

int StatusFor(const mg_connection* connection) {
  const std::string_view host = HostIn(mg_get_header(connection, "Host"));
  if (host != "localhost" && !IsLoopback(host)) return kForbidden;
  const mg_request_info& request = *mg_get_request_info(connection);
  const char* const path = request.local_uri;
  if (path == nullptr || std::string_view(path) != kPath) return kNotFound;
  return std::string_view(request.request_method) == "GET" ? kOk : kNotAllowed;
}

class Listener final : public MetricsListener {
 public:
  ~Listener() override;

  Status Listen(const control::Address& address);
  const std::string& url() const override { return url_; }
  void Publish(Sample&& sample) override {
    auto published = std::make_shared<const Sample>(std::move(sample));
    const std::lock_guard lock(sample_mutex_);
    sample_.swap(published);
  }

 private:
  static Listener& Of(const mg_connection* connection) {
    return *static_cast<Listener*>(mg_get_user_data(mg_get_context(connection)));
  }
  static int Answer(mg_connection* connection);
  static int TakeMessage(const mg_connection* connection, const char* message);
  /// Renders a sample once, however many readers there are.
  std::shared_ptr<const std::string> Page();

  mg_context* context_ = nullptr;
  std::string host_, port_;
  std::string url_;
  std::mutex start_mutex_;
  std::string start_error_;  // guarded by start_mutex_
  std::mutex sample_mutex_;
  std::shared_ptr<const Sample> sample_ = std::make_shared<Sample>();  // guarded by sample_mutex_
  std::mutex page_mutex_;
  std::shared_ptr<const Sample> rendered_;   // guarded by page_mutex_
  std::shared_ptr<const std::string> page_;  // guarded by page_mutex_
};

Status Listener::Listen(const control::Address& address) {
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
    return Unavailable("--metrics: listen on ", port, ": ", start_error_);
  }
  host_ = address.host;
  port_ = StrCat(bound.port);
  url_ = StrCat("http://", host, ":", port_, kPath);
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
  const int status = StatusFor(connection);
  const auto page = status == kOk ? Of(connection).Page() : std::make_shared<const std::string>();
  const std::string head =
      StrCat("HTTP/1.1 ", status, " ", mg_get_response_code_text(connection, status),
             "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: ",
             page->size(), "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
  mg_write(connection, head.data(), head.size());
  mg_write(connection, page->data(), page->size());
  return status;
}

std::shared_ptr<const std::string> Listener::Page() {
  const std::lock_guard one_at_a_time(page_mutex_);
  std::shared_ptr<const Sample> sample;
  {
    const std::lock_guard lock(sample_mutex_);
    sample = sample_;
  }
  if (sample != rendered_) {
    page_ = std::make_shared<const std::string>(Render(*sample));
    rendered_ = std::move(sample);
  }
  return page_;
}

}  // namespace

StatusOr<std::unique_ptr<MetricsListener>> MetricsListener::Open(std::string_view place) {
  PB_ASSIGN_OR_RETURN(const control::Address address, ParsePlace(place));
  auto listener = std::make_unique<Listener>();
  PB_RETURN_IF_ERROR(listener->Listen(address));
  return listener;
}

}  // namespace patchbay::scheduler
