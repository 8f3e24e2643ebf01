#include "runtime/wire/data/tls_channel.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/wire/data/socket_bio.h"

namespace patchbay::data {
namespace {

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

StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Make(Side side, const TlsKey& key) {
  std::shared_ptr<TlsContext> made(new TlsContext(side, key));
  made->ctx_ = SSL_CTX_new(side == Side::kSender ? TLS_client_method() : TLS_server_method());
  if (made->ctx_ == nullptr || !Configure(made->ctx_, side)) {
    return absl::InternalError(StrCat("set up tls: ", TakeTlsErrors()));
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
    return absl::ResourceExhaustedError(StrCat("open tls connection: ", TakeTlsErrors()));
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
    return absl::PermissionDeniedError("tls handshake: the peer did not use the key");
  }
  const int error = SSL_get_error(ssl_, result);
  wait_events_ = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  return absl::PermissionDeniedError(StrCat("tls handshake: ", TakeTlsErrors()));
}

/// After a read or write that did not go through: OK once it may be tried again.
Status TlsChannel::Await(int result, const char* doing, std::int64_t deadline_ms) {
  const int error = SSL_get_error(ssl_, result);
  const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  const bool ended = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (error == SSL_ERROR_SSL && !ended) {
    return absl::DataLossError(StrCat(doing, ": ", TakeTlsErrors()));
  }
  if (!waits) return absl::UnavailableError(StrCat(doing, ": ", TakeTlsErrors()));
  const short events = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  return Annotate(AwaitSocket(socket_.get(), events, deadline_ms), doing);
}

Status TlsChannel::AwaitInput(std::int64_t deadline_ms) {
  if (SSL_has_pending(ssl_) == 1) return absl::OkStatus();
  return AwaitSocket(socket_.get(), POLLIN, deadline_ms);
}

// The deadline is looked at here and at each wait, not at each record.
Status TlsChannel::Read(std::span<std::byte> out, std::int64_t deadline_ms) {
  if (SteadyNowMs() > deadline_ms) return absl::DeadlineExceededError("read over tls: too slow");
  ERR_clear_error();
  while (!out.empty()) {
    if (shut_) return absl::UnavailableError("read from sender: the connection was ended here");
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
  return absl::InternalError(StrCat("change tls key: ", TakeTlsErrors()));
}

Status TlsChannel::Write(std::span<const std::byte> bytes, std::int64_t deadline_ms) {
  while (!bytes.empty()) {
    if (shut_) return absl::UnavailableError("write over tls: the connection was ended here");
    if (SteadyNowMs() > deadline_ms) return absl::DeadlineExceededError("write over tls");
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
    if (!BIO_should_retry(bio)) {
      return absl::UnavailableError(StrCat("write over tls: ", std::strerror(errno)));
    }
    PB_RETURN_IF_ERROR(
        Annotate(AwaitSocket(socket_.get(), POLLOUT, deadline_ms), "write over tls"));
    if (shut_) return absl::UnavailableError("write over tls: the connection was ended here");
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
