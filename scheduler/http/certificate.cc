#include "scheduler/http/certificate.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "runtime/wire/control/keys.h"

namespace patchbay::scheduler {

StatusOr<std::unique_ptr<Certificate>> Certificate::Read(const std::string& path) {
  PB_RETURN_IF_ERROR(control::ReadPrivateFile(path).status());
  auto made = std::unique_ptr<Certificate>(new Certificate(SSL_CTX_new(TLS_server_method())));
  SSL_CTX* const context = made->context_;
  PB_CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // readers keep their tickets
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);          // while connections wait
  // A terminal would be asked for the password of a key.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return -1; });
  const bool is_whole = SSL_CTX_use_certificate_chain_file(context, path.c_str()) == 1 &&
                        SSL_CTX_use_PrivateKey_file(context, path.c_str(), SSL_FILETYPE_PEM) == 1;
  ERR_clear_error();
  if (is_whole) return made;
  return InvalidArgument("read certificate: ", path,
                         ": expected PEM of a certificate, of those that signed it, and of its "
                         "private key without a password");
}

Certificate::~Certificate() { SSL_CTX_free(context_); }

bool Certificate::IsFor(const std::string& host) const {
  X509* const own = SSL_CTX_get0_certificate(context_);
  return X509_check_host(own, host.data(), host.size(), 0, nullptr) == 1 ||
         X509_check_ip_asc(own, host.c_str(), 0) == 1;
}

}  // namespace patchbay::scheduler
