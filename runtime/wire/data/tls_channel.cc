#include "runtime/wire/data/tls_channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace patchbay::data {
namespace {

constexpr std::string_view kSalt = "patchbay data path, tls 1.3 external psk";

OSSL_PARAM OctetParam(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

/// A connection's bytes between OpenSSL and the kernel.
struct Wire {
  int fd = -1;
  std::vector<char> out;  ///< to be sent, from `sent` on
  std::size_t sent = 0;
  /// The next record's header, which came with the end of the record before: OpenSSL asks for
  /// header and body one after the other.
  std::array<char, SSL3_RT_HEADER_LENGTH> header{};
  std::size_t header_bytes = 0;
};

Wire& WireOf(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }

bool IsTemporary() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/// Whether all pending bytes were sent; otherwise the BIO tells whether to retry.
bool SendWaiting(BIO* bio) {
  Wire& wire = WireOf(bio);
  while (wire.sent < wire.out.size()) {
    const ssize_t sent =
        send(wire.fd, wire.out.data() + wire.sent, wire.out.size() - wire.sent, MSG_NOSIGNAL);
    if (sent < 0) {
      if (IsTemporary()) BIO_set_retry_write(bio);
      return false;
    }
    wire.sent += static_cast<std::size_t>(sent);
  }
  wire.out.clear();
  wire.sent = 0;
  return true;
}

int WriteBytes(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Wire& wire = WireOf(bio);
  const auto count = static_cast<std::size_t>(size);
  if (wire.out.size() + count > kWriteBufferBytes && !SendWaiting(bio)) return -1;
  wire.out.insert(wire.out.end(), bytes, bytes + count);
  return size;
}

int TakeHeader(Wire& wire, char* bytes, std::size_t size) {
  const std::size_t taken = std::min(size, wire.header_bytes);
  std::memcpy(bytes, wire.header.data(), taken);
  std::memmove(wire.header.data(), wire.header.data() + taken, wire.header_bytes - taken);
  wire.header_bytes -= taken;
  return static_cast<int>(taken);
}

int ReadBytes(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Wire& wire = WireOf(bio);
  const auto count = static_cast<std::size_t>(size);
  if (wire.header_bytes > 0) return TakeHeader(wire, bytes, count);
  std::array<iovec, 2> parts = {{{bytes, count}, {wire.header.data(), wire.header.size()}}};
  const ssize_t got = readv(wire.fd, parts.data(), static_cast<int>(parts.size()));
  if (got < 0 && IsTemporary()) BIO_set_retry_read(bio);
  if (got <= size) return static_cast<int>(got);
  wire.header_bytes = static_cast<std::size_t>(got) - count;
  return size;
}

long Control(BIO* bio, int command, long, void*) {
  if (command != BIO_CTRL_FLUSH) return 0;
  BIO_clear_retry_flags(bio);
  return SendWaiting(bio) ? 1 : -1;
}

int Destroy(BIO* bio) {
  delete static_cast<Wire*>(BIO_get_data(bio));
  return 1;
}

BIO_METHOD* MakeSocketMethod() {
  BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "patchbay");
  if (method == nullptr) return nullptr;
  BIO_meth_set_write(method, &WriteBytes);
  BIO_meth_set_read(method, &ReadBytes);
  BIO_meth_set_ctrl(method, &Control);
  BIO_meth_set_destroy(method, &Destroy);
  return method;
}

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t kWriteAtOnce = 1 << 20;       ///< looks for Shut between
constexpr unsigned char kSuiteId[] = {0x13, 0x01};  ///< kTlsSuite

std::string TakeTlsErrors() {
  std::string text;
  while (const unsigned long error = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(error);
    if (text.empty()) text = reason == nullptr ? StrCat("error ", error) : reason;
  }
  return text.empty() ? "the connection ended" : text;
}

const TlsKey& KeyOf(SSL* ssl) {
  return *static_cast<const TlsKey*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

SSL_SESSION* SessionOf(SSL* ssl, const TlsKey& key) {
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const suite = SSL_CIPHER_find(ssl, kSuiteId);
  const bool ready =
      session != nullptr && suite != nullptr &&
      SSL_SESSION_set1_master_key(session, key.bytes.data(), key.bytes.size()) == 1 &&
      SSL_SESSION_set_cipher(session, suite) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (ready) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int OfferKey(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* identity_bytes,
             SSL_SESSION** session) {
  const TlsKey& key = KeyOf(ssl);
  *identity = reinterpret_cast<const unsigned char*>(key.identity.data());
  *identity_bytes = key.identity.size();
  *session = SessionOf(ssl, key);
  return *session != nullptr;
}

/// Without a session the handshake ends: there is no certificate to go on with.
int FindKey(SSL* ssl, const unsigned char* identity, std::size_t identity_bytes,
            SSL_SESSION** session) {
  const TlsKey& key = KeyOf(ssl);
  const std::string_view asked(reinterpret_cast<const char*>(identity), identity_bytes);
  *session = asked == key.identity ? SessionOf(ssl, key) : nullptr;
  return asked != key.identity || *session != nullptr;
}

bool Configure(SSL_CTX* ctx, TlsContext::Side side) {
  SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // No authority is trusted, so that a peer with a certificate instead of the key is refused.
  SSL_CTX_set_verify(ctx, side == TlsContext::Side::kSender ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                     nullptr);
  if (side == TlsContext::Side::kSender) {
    SSL_CTX_set_psk_use_session_callback(ctx, &OfferKey);
  } else {
    SSL_CTX_set_psk_find_session_callback(ctx, &FindKey);
  }
  return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(ctx, kTlsSuite) == 1 &&
         SSL_CTX_set1_groups_list(ctx, "X25519:P-256") == 1 &&
         SSL_CTX_set_num_tickets(ctx, 0) == 1 && SSL_CTX_set_max_early_data(ctx, 0) == 1;
}

}  // namespace

std::string TrainerIdentity::Text() const { return StrCat(stream, "|", rank, "|", incarnation); }

StatusOr<TlsKey> DeriveTlsKey(const StreamSecret& secret, const TrainerIdentity& trainer) {
  TlsKey key;
  key.identity = trainer.Text();
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr), &EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      kdf == nullptr ? nullptr : EVP_KDF_CTX_new(kdf.get()), &EVP_KDF_CTX_free);
  std::string digest = "SHA256";
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OctetParam(OSSL_KDF_PARAM_KEY, AsText(secret)), OctetParam(OSSL_KDF_PARAM_SALT, kSalt),
      OctetParam(OSSL_KDF_PARAM_INFO, key.identity), OSSL_PARAM_construct_end()};
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), key.bytes.data(), key.bytes.size(), params) != 1) {
    return Internal("derive tls key: HKDF-SHA256 failed");
  }
  return key;
}

/// The method is immutable once made, and made once in a process.
BIO* MakeSocketBio(int fd) {
  static BIO_METHOD* const method = MakeSocketMethod();
  BIO* const bio = method == nullptr ? nullptr : BIO_new(method);
  if (bio == nullptr) return nullptr;
  auto* wire = new Wire;
  wire->fd = fd;
  BIO_set_data(bio, wire);
  BIO_set_init(bio, 1);
  return bio;
}

StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Make(Side side, const TlsKey& key) {
  std::shared_ptr<TlsContext> made(new TlsContext(side, key));
  made->ctx_ = SSL_CTX_new(side == Side::kSender ? TLS_client_method() : TLS_server_method());
  if (made->ctx_ == nullptr || !Configure(made->ctx_, side)) {
    return Internal("set up tls: ", TakeTlsErrors());
  }
  SSL_CTX_set_app_data(made->ctx_, const_cast<TlsKey*>(&made->key_));
  return std::shared_ptr<const TlsContext>(std::move(made));
}

TlsContext::~TlsContext() { SSL_CTX_free(ctx_); }

StatusOr<std::unique_ptr<TlsChannel>> TlsChannel::Make(std::shared_ptr<const TlsContext> context,
                                                       UniqueFd socket,
                                                       std::uint64_t records_per_key) {
  const bool is_sender = context->side() == TlsContext::Side::kSender;
  std::unique_ptr<TlsChannel> made(
      new TlsChannel(std::move(context), std::move(socket), records_per_key));
  made->ssl_ = SSL_new(made->context_->ctx());
  BIO* const bio = MakeSocketBio(made->socket_.get());
  if (made->ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    return ResourceExhausted("open tls connection: ", TakeTlsErrors());
  }
  SSL_set_bio(made->ssl_, bio, bio);
  is_sender ? SSL_set_connect_state(made->ssl_) : SSL_set_accept_state(made->ssl_);
  return made;
}

TlsChannel::~TlsChannel() { SSL_free(ssl_); }

StatusOr<bool> TlsChannel::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    if (SSL_session_reused(ssl_) == 1) return true;
    return PermissionDenied("tls handshake: the peer does not have the key");
  }
  const int error = SSL_get_error(ssl_, result);
  wait_events_ = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  return PermissionDenied("tls handshake: ", TakeTlsErrors());
}

/// After a read or write that did not go through: OK once it may be tried again.
Status TlsChannel::Await(int result, const char* doing, std::int64_t deadline_ms) {
  const int error = SSL_get_error(ssl_, result);
  const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  const bool ended = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (error == SSL_ERROR_SSL && !ended) return DataLoss(doing, ": ", TakeTlsErrors());
  if (!waits) return Unavailable(doing, ": ", TakeTlsErrors());
  const short events = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  return Annotate(AwaitSocket(socket_.get(), events, deadline_ms), doing);
}

Status TlsChannel::AwaitInput(std::int64_t deadline_ms) {
  if (SSL_has_pending(ssl_) == 1) return absl::OkStatus();
  return AwaitSocket(socket_.get(), POLLIN, deadline_ms);
}

// The deadline is looked at here and at each wait, not at each record.
Status TlsChannel::Read(std::span<std::byte> out, std::int64_t deadline_ms) {
  if (SteadyNowMs() > deadline_ms) return DeadlineExceeded("read over tls: too slow");
  ERR_clear_error();
  while (!out.empty()) {
    if (shut_) return Unavailable("read from sender: the connection was ended here");
    const auto wanted = static_cast<int>(std::min<std::size_t>(out.size(), INT_MAX));
    const int got = SSL_read(ssl_, out.data(), wanted);
    if (got > 0) {
      out = out.subspan(static_cast<std::size_t>(got));
    } else {
      PB_RETURN_IF_ERROR(Await(got, "read over tls", deadline_ms));
    }
  }
  return absl::OkStatus();
}

bool TlsChannel::HoldsPartOfARecord() const { return SSL_has_pending(ssl_) == 1; }

Status TlsChannel::RenewKey(std::size_t bytes) {
  records_ += (bytes + kRecordBytes - 1) / kRecordBytes;
  if (records_ < records_per_key_) return absl::OkStatus();
  records_ = 0;
  ++key_updates_;
  if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1) return absl::OkStatus();
  return Internal("change tls key: ", TakeTlsErrors());
}

Status TlsChannel::Write(std::span<const std::byte> bytes, std::int64_t deadline_ms) {
  while (!bytes.empty()) {
    if (shut_) return Unavailable("write over tls: the connection was ended here");
    if (SteadyNowMs() > deadline_ms) return DeadlineExceeded("write over tls");
    ERR_clear_error();
    const auto piece = static_cast<int>(std::min(bytes.size(), kWriteAtOnce));
    const int sent = SSL_write(ssl_, bytes.data(), piece);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      PB_RETURN_IF_ERROR(RenewKey(static_cast<std::size_t>(sent)));
    } else {
      PB_RETURN_IF_ERROR(Await(sent, "write over tls", deadline_ms));
    }
  }
  return Flush(deadline_ms);
}

/// Sends what the BIO still holds.
Status TlsChannel::Flush(std::int64_t deadline_ms) {
  BIO* const bio = SSL_get_wbio(ssl_);
  while (BIO_flush(bio) != 1) {
    if (!BIO_should_retry(bio)) return Unavailable("write over tls: ", std::strerror(errno));
    PB_RETURN_IF_ERROR(
        Annotate(AwaitSocket(socket_.get(), POLLOUT, deadline_ms), "write over tls"));
    if (shut_) return Unavailable("write over tls: the connection was ended here");
  }
  return absl::OkStatus();
}

void TlsChannel::Shut() {
  shut_ = true;
  shutdown(socket_.get(), SHUT_RDWR);
}

bool TlsChannel::PeerGone() const {
  char c = 0;
  const ssize_t got = recv(socket_.get(), &c, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace patchbay::data
