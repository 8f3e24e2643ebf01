#include "runtime/core/seal.h"

#include <algorithm>
#include <cstring>
#include <span>

#include <openssl/evp.h>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

constexpr int kTagBytes = 16, kNonceBytes = 12;
/// The cipher's lengths are ints.
constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

using Nonce = std::array<unsigned char, kNonceBytes>;

Nonce NonceOf(std::uint64_t counter) {
  Nonce nonce{};
  std::memcpy(nonce.data(), &counter, sizeof(counter));
  return nonce;
}

unsigned char* Bytes(char* text) { return reinterpret_cast<unsigned char*>(text); }

}  // namespace

/// One direction under one key.
struct Sealer::Cipher {
  Cipher(const Digest& key, bool seals) : context(EVP_CIPHER_CTX_new()) {
    PB_CHECK(context != nullptr);
    PB_CHECK(EVP_CipherInit_ex(context, EVP_aes_256_gcm(), nullptr, key.bytes.data(), nullptr,
                               seals ? 1 : 0) == 1);
  }
  ~Cipher() { EVP_CIPHER_CTX_free(context); }
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;

  void Begin(std::uint64_t counter, std::uint64_t place) {
    const Nonce nonce = NonceOf(counter);
    std::array<unsigned char, sizeof(place)> beside;
    std::memcpy(beside.data(), &place, sizeof(place));
    int done = 0;
    PB_CHECK(EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, nonce.data(), -1) == 1);
    PB_CHECK(EVP_CipherUpdate(context, nullptr, &done, beside.data(), sizeof(place)) == 1);
  }
  void Pass(char* text, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t piece = std::min(kPieceBytes, bytes - at);
      int done = 0;
      PB_CHECK(EVP_CipherUpdate(context, Bytes(text + at), &done, Bytes(text + at),
                                static_cast<int>(piece)) == 1);
      at += piece;
    }
  }
  /// False when the tag that was set is another one.
  bool End() {
    int done = 0;
    std::array<unsigned char, kTagBytes> nothing;
    return EVP_CipherFinal_ex(context, nothing.data(), &done) == 1;
  }

  EVP_CIPHER_CTX* context;
};

Sealer::Sealer(std::string_view secret, std::string_view purpose)
    : secret_(HmacSha256(AsBytes(secret), purpose)) {
  key_id_ = HmacSha256(std::as_bytes(std::span(secret_.bytes)), "key id").Hex().substr(0, 32);
  FillRandom(salt_);
  sealing_ = std::make_unique<Cipher>(KeyOf(salt_), true);
}

Sealer::~Sealer() = default;

Digest Sealer::KeyOf(const Salt& salt) const {
  return HmacSha256(std::as_bytes(std::span(secret_.bytes)), StrCat("seal ", AsText(salt)));
}

void Sealer::Seal(std::uint64_t place, std::string& text) {
  const std::size_t bytes = text.size();
  text.resize(bytes + kSealBytes);
  sealing_->Begin(sealed_, place);
  sealing_->Pass(text.data(), bytes);
  PB_CHECK(sealing_->End());
  char* end = text.data() + bytes;
  PB_CHECK(EVP_CIPHER_CTX_ctrl(sealing_->context, EVP_CTRL_GCM_GET_TAG, kTagBytes, end) == 1);
  std::memcpy(end + kTagBytes, salt_.data(), salt_.size());
  std::memcpy(end + kTagBytes + salt_.size(), &sealed_, sizeof(sealed_));
  ++sealed_;
}

StatusOr<std::string> Sealer::Open(std::uint64_t place, std::string_view sealed) {
  if (sealed.size() < kSealBytes) return DataLoss("open sealed bytes: too short");
  std::string text(sealed.substr(0, sealed.size() - kSealBytes));
  std::string_view end = sealed.substr(text.size());
  std::array<unsigned char, kTagBytes> tag;
  Salt salt;
  std::uint64_t counter = 0;
  std::memcpy(tag.data(), end.data(), tag.size());
  std::memcpy(salt.data(), end.data() + tag.size(), salt.size());
  std::memcpy(&counter, end.data() + tag.size() + salt.size(), sizeof(counter));
  if (opening_ == nullptr || salt != opened_salt_) {
    opening_ = std::make_unique<Cipher>(KeyOf(salt), false);
    opened_salt_ = salt;
  }
  opening_->Begin(counter, place);
  opening_->Pass(text.data(), text.size());
  PB_CHECK(EVP_CIPHER_CTX_ctrl(opening_->context, EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) ==
           1);
  if (!opening_->End()) return DataLoss("open sealed bytes: they are damaged");
  return text;
}

}  // namespace patchbay
