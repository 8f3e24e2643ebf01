// Encrypts the content of files.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"

namespace patchbay {

/// AES-256-GCM (NIST SP 800-38D) under a key derived from a secret. Each Sealer draws 16 random
/// bytes, derives its own key from them, and counts its nonces from 0, so none is used twice. Use
/// from one thread at a time.
class Sealer {
 public:
  /// `purpose` keeps keys of one secret apart.
  Sealer(std::string_view secret, std::string_view purpose);
  ~Sealer();
  Sealer(const Sealer&) = delete;
  Sealer& operator=(const Sealer&) = delete;

  /// Names the key and tells nothing of it: 32 hex digits.
  const std::string& key_id() const { return key_id_; }

  /// Encrypts `text` in place; it grows by kSealBytes. `place` is its position in the file: it can
  /// be opened only there.
  void Seal(std::uint64_t place, std::string& text);
  /// The text again. DataLoss when the bytes are damaged, from another place or another key's.
  StatusOr<std::string> Open(std::uint64_t place, std::string_view sealed);

 private:
  using Salt = std::array<std::byte, 16>;
  struct Cipher;

  Digest KeyOf(const Salt& salt) const;

  Digest secret_;
  std::string key_id_;
  Salt salt_{}, opened_salt_{};
  std::uint64_t sealed_ = 0;
  std::unique_ptr<Cipher> sealing_, opening_;
};

/// Tag, salt and counter, behind the hidden text.
inline constexpr std::size_t kSealBytes = 16 + 16 + 8;

}  // namespace patchbay
