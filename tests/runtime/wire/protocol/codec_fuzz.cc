// Seeded mutation of every message: never a crash, never a hang, never more memory than its size
// allows (the sanitizer builds run this too). PATCHBAY_FUZZ_ROUNDS widens it.
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "runtime/wire/protocol/codec.h"
#include "tests/runtime/wire/protocol/every_field.h"

namespace patchbay::protocol {
namespace {

using test::Equal;
using test::Filled;
using test::kBodies;

std::uint64_t Rounds() {
  const char* text = std::getenv("PATCHBAY_FUZZ_ROUNDS");
  return text == nullptr ? 400 : std::strtoull(text, nullptr, 10);
}

void Mutate(std::string& bytes, std::mt19937_64& random) {
  const std::size_t edits = 1 + random() % 8;
  for (std::size_t i = 0; i < edits && !bytes.empty(); ++i) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes[at] = random() % 2 == 0 ? '\0' : '\xff';
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.insert(at, std::string(8 * (1 + random() % 4), static_cast<char>(random())));
        break;
      default: {
        const std::size_t from = random() % bytes.size();
        bytes[at] = bytes[from];
        break;
      }
    }
  }
}

TEST(CodecFuzz, MutatedMessagesAreReadOrRefused) {
  Decoder decoder;
  Encoder encoder;
  std::uint64_t read = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= Rounds(); ++seed) {
    for (std::size_t body = 0; body < kBodies; ++body) {
      const auto original = Encode(Filled(body, seed));
      ASSERT_TRUE(original.ok());
      std::mt19937_64 random(seed * 1000 + body);
      for (int i = 0; i < 25; ++i) {
        std::string bytes = *original;
        Mutate(bytes, random);
        SCOPED_TRACE(StrCat("seed ", seed, " body ", body, " mutation ", i));
        const auto message = decoder.Decode(AsBytes(bytes));
        if (!message.ok()) {
          ++refused;
          continue;
        }
        ++read;
        // A message that was read can be written, and comes back as itself.
        const auto again = encoder.Encode(*message);
        ASSERT_TRUE(again.ok()) << Describe(again.status());
        const auto twice = Decode(*again);
        ASSERT_TRUE(twice.ok()) << Describe(twice.status());
        EXPECT_TRUE(Equal(twice->body, message->body));
      }
    }
  }
  EXPECT_GT(read, 0u);
  EXPECT_GT(refused, 0u);
}

TEST(CodecFuzz, EveryBitOfEveryMessageMayFlip) {
  Decoder decoder;
  for (std::size_t body = 0; body < kBodies; ++body) {
    const auto original = Encode(Filled(body, 2));
    ASSERT_TRUE(original.ok());
    for (std::size_t bit = 0; bit < 8 * original->size(); ++bit) {
      std::string bytes = *original;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      decoder.Decode(AsBytes(bytes)).status().IgnoreError();
    }
  }
}

TEST(CodecFuzz, RandomBytesAreRefused) {
  Decoder decoder;
  std::mt19937_64 random(11);
  for (std::uint64_t i = 0; i < 50 * Rounds(); ++i) {
    std::string bytes(8 * (random() % 64), '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_FALSE(decoder.Decode(AsBytes(bytes)).ok()) << "iteration " << i << " of seed 11";
  }
}

}  // namespace
}  // namespace patchbay::protocol
