#include "runtime/wire/data/tls_key.h"

#include <memory>
#include <string_view>

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

namespace patchbay::data {
namespace {

constexpr std::string_view kSalt = "patchbay data path, tls 1.3 external psk";

OSSL_PARAM OctetParam(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
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
    return absl::InternalError("derive tls key: HKDF-SHA256 failed");
  }
  return key;
}

}  // namespace patchbay::data
