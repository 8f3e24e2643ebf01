// The proof to browsers and Prometheus on other machines that a page is this cluster's.
#pragma once

#include <memory>
#include <string>

#include <openssl/types.h>

#include "runtime/core/status.h"

namespace patchbay::scheduler {

/// A certificate of the site with its private key, for TLS 1.2 and 1.3. Immutable.
class Certificate {
 public:
  /// One file of PEM: the certificate, those that signed it, the key without a password. Errors as
  /// of control::ReadPrivateFile; InvalidArgument for other content.
  static StatusOr<std::unique_ptr<Certificate>> Read(const std::string& path);
  ~Certificate();

  /// Whether it is for a host of this name or address.
  bool IsFor(const std::string& host) const;
  SSL_CTX* context() const { return context_; }

 private:
  explicit Certificate(SSL_CTX* context) : context_(context) {}

  SSL_CTX* const context_;
};

}  // namespace patchbay::scheduler
