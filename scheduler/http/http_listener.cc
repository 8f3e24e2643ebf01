#include "scheduler/http/http_listener.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "runtime/core/clock.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/address.h"
#include "scheduler/http/certificate.h"
#include "scheduler/http/connection.h"

namespace patchbay::scheduler {
namespace {

constexpr int kThreads = 32, kBacklog = 128, kRetryAcceptMs = 100;
constexpr std::int64_t kRequestNs = 2'000'000'000;
/// A page asks again after 2 s, or 10 s where there is much to show. A handshake costs as much as
/// ten answers.
constexpr std::int64_t kKeptNs = 15'000'000'000;
constexpr std::size_t kMostKept = 256;
constexpr int kSweepMs = 1000;
constexpr std::size_t kMostHeadBytes = 8192;
constexpr std::string_view kHeadEnd = "\r\n\r\n";
/// Nothing but this server's own files may run, be drawn or be asked; nobody may frame them.
constexpr std::string_view kSafeguards =
    "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n";

class Listener final : public HttpListener {
 public:
  Listener(std::unique_ptr<Certificate> certificate, Respond respond)
      : certificate_(std::move(certificate)), respond_(std::move(respond)) {}
  ~Listener() override;

  Status Listen(std::string_view flag, const control::Address& address);
  const std::string& url() const override { return url_; }

 private:
  SSL_CTX* tls() const { return certificate_ == nullptr ? nullptr : certificate_->context(); }
  struct Kept {
    std::unique_ptr<Connection> connection;
    std::int64_t until_ns = 0;
  };

  void Run();
  /// Wakes one thread when the descriptor is readable.
  void Watch(int fd, int operation);
  /// The connection that this descriptor is, or has; null when it is gone.
  std::unique_ptr<Connection> Take(int fd);
  void Keep(std::unique_ptr<Connection> connection);
  void CloseEnded();
  /// Whether another request may follow.
  bool Serve(Connection& connection) const;
  /// Sets `may_continue` to that of the request, false when it is none.
  HttpAnswer AnswerTo(std::string_view head, bool& may_continue) const;
  bool IsOwnName(std::string_view host) const;

  const std::unique_ptr<Certificate> certificate_;  ///< null: http
  const Respond respond_;
  UniqueFd socket_;
  UniqueFd stop_{eventfd(0, EFD_CLOEXEC)};
  UniqueFd ready_{epoll_create1(EPOLL_CLOEXEC)};
  std::string url_;
  std::mutex kept_mutex_;
  std::list<Kept> kept_;               ///< the oldest first; guarded by kept_mutex_
  std::vector<std::jthread> threads_;  ///< they use all above
};

Status Listener::Listen(std::string_view flag, const control::Address& address) {
  const std::string port = StrCat(address.port);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  if (getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found) != 0) {
    return InvalidArgument(flag, ": listen on ", address.ToString(), ": not a numeric address");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> target(found, &freeaddrinfo);
  socket_ = UniqueFd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in6 bound{};  // the port is where that of IPv4 is
  socklen_t size = sizeof(bound);
  if (bind(socket_.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket_.get(), kBacklog) != 0 ||
      getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return Unavailable(flag, ": listen on ", address.ToString(), ": ", std::strerror(errno));
  }
  const bool v6 = found->ai_family == AF_INET6;
  url_ = StrCat(tls() == nullptr ? "http://" : "https://", v6 ? "[" : "", address.host,
                v6 ? "]:" : ":", ntohs(bound.sin6_port));
  Watch(socket_.get(), EPOLL_CTL_ADD);
  epoll_event stop{EPOLLIN, {.fd = stop_.get()}};
  epoll_ctl(ready_.get(), EPOLL_CTL_ADD, stop_.get(), &stop);
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
  return absl::OkStatus();
}

Listener::~Listener() { eventfd_write(stop_.get(), 1); }

void Listener::Run() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);  // a reader that has left is no reason to end
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  for (;;) {
    epoll_event event{};
    const int ready = epoll_wait(ready_.get(), &event, 1, kSweepMs);
    if (ready <= 0) CloseEnded();
    if (ready <= 0) continue;
    if (event.data.fd == stop_.get()) return;
    std::unique_ptr<Connection> connection = Take(event.data.fd);
    if (connection == nullptr) continue;
    connection->set_deadline(SteadyNowNs() + kRequestNs);
    if (Serve(*connection)) Keep(std::move(connection));
  }
}

void Listener::Watch(int fd, int operation) {
  epoll_event event{EPOLLIN | EPOLLONESHOT, {.fd = fd}};
  epoll_ctl(ready_.get(), operation, fd, &event);
}

std::unique_ptr<Connection> Listener::Take(int fd) {
  if (fd == socket_.get()) {
    UniqueFd accepted(accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted.valid() && errno != EAGAIN) {
      pollfd stop{stop_.get(), POLLIN, 0};
      poll(&stop, 1, kRetryAcceptMs);  // the process has no descriptor left
    }
    Watch(fd, EPOLL_CTL_MOD);
    if (!accepted.valid()) return nullptr;
    const int on = 1;  // an answer's body does not wait until its head is acknowledged
    setsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return std::make_unique<Connection>(std::move(accepted), tls(), stop_.get());
  }
  const std::lock_guard lock(kept_mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->connection->socket() != fd) continue;
    std::unique_ptr<Connection> connection = std::move(kept->connection);
    kept_.erase(kept);
    epoll_ctl(ready_.get(), EPOLL_CTL_DEL, fd, nullptr);
    return connection;
  }
  return nullptr;
}

void Listener::Keep(std::unique_ptr<Connection> connection) {
  CloseEnded();
  const std::lock_guard lock(kept_mutex_);
  const int fd = connection->socket();
  kept_.push_back({std::move(connection), SteadyNowNs() + kKeptNs});
  Watch(fd, EPOLL_CTL_ADD);
}

/// Closes connections whose time is over, and the oldest where there is no room for one more.
void Listener::CloseEnded() {
  std::list<Kept> old;  // closed without the mutex
  const std::lock_guard lock(kept_mutex_);
  while (!kept_.empty() && (kept_.front().until_ns <= SteadyNowNs() || kept_.size() >= kMostKept)) {
    old.splice(old.end(), kept_, kept_.begin());
  }
}

bool Listener::Serve(Connection& connection) const {
  std::array<char, kMostHeadBytes> text;
  std::size_t size = 0;
  std::string_view head;
  do {
    const std::size_t got = connection.Read(std::span(text).subspan(size));
    if (got == 0) return false;
    size += got;
    head = std::string_view(text.data(), size);
  } while (head.find(kHeadEnd) == head.npos && size < text.size());
  bool may_continue = false;
  const HttpAnswer answer = AnswerTo(head, may_continue);
  may_continue = may_continue && head.ends_with(kHeadEnd) && connection.IsDrained();
  const std::string cookie = answer.session.empty()
                                 ? ""
                                 : StrCat("Set-Cookie: ", kSessionCookie, "=", answer.session,
                                          "; HttpOnly; SameSite=Strict; Path=/",
                                          tls() == nullptr ? "" : "; Secure", "\r\n");
  return connection.Write(StrCat("HTTP/1.1 ", answer.status, " \r\nContent-Type: ", answer.type,
                                 "\r\nContent-Length: ", answer.body->size(), "\r\n", cookie,
                                 kSafeguards, "Connection: ", may_continue ? "keep-alive" : "close",
                                 "\r\n\r\n")) &&
         connection.Write(*answer.body) && may_continue;
}

HttpAnswer Listener::AnswerTo(std::string_view head, bool& may_continue) const {
  const std::size_t end = head.find(kHeadEnd);
  if (end == head.npos) return {kHttpTooLarge};
  const std::optional<HttpRequest> request = ParseRequest(head.substr(0, end + kHeadEnd.size()));
  if (!request) return {kHttpMalformed};
  may_continue = request->may_continue;
  return IsOwnName(request->host) ? respond_(*request) : HttpAnswer{kHttpForbidden};
}

bool Listener::IsOwnName(std::string_view host) const {
  return host == "localhost" || control::IsLoopback(host) ||
         (certificate_ != nullptr && !host.empty() && certificate_->IsFor(std::string(host)));
}

}  // namespace

StatusOr<std::unique_ptr<HttpListener>> HttpListener::Open(std::string_view flag,
                                                           std::string_view place,
                                                           const std::string& tls,
                                                           Respond respond) {
  PB_ASSIGN_OR_RETURN(const control::Address address,
                      control::ParsePagePlace(flag, place, {{"--tls", tls}}));
  std::unique_ptr<Certificate> certificate;
  if (!tls.empty()) {
    PB_ASSIGN_OR_RETURN(certificate, Certificate::Read(tls));
  }
  auto listener = std::make_unique<Listener>(std::move(certificate), std::move(respond));
  PB_RETURN_IF_ERROR(listener->Listen(flag, address));
  return listener;
}

}  // namespace patchbay::scheduler
