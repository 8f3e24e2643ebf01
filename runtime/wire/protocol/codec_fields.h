// The codec of one field, by its types in C++ and on the wire. Only for the codec*.cc files of this
// folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <capnp/message.h>

#include "patchbay.capnp.h"
#include "runtime/wire/protocol/codec.h"
#include "runtime/wire/protocol/message_fields.h"

namespace patchbay::protocol::codec {

/// Remembers the first thing that could not be encoded.
struct Writing {
  const char* failure = nullptr;

  void Fail(const char* why) {
    if (failure == nullptr) failure = why;
  }
};

/// Remembers the first thing that was wrong, and how much memory the message may still cause: a
/// small message must not become a large object.
class Reading {
 public:
  explicit Reading(std::size_t message_bytes) : budget_bytes_(4 * message_bytes + (64u << 10)) {}

  void Fail(const char* why) {
    if (failure_ == nullptr) failure_ = why;
  }
  /// False, and failed, when the budget is used up.
  bool Charge(std::size_t bytes) {
    if (failure_ != nullptr) return false;
    if (bytes > budget_bytes_) {
      Fail("the message would take more memory than its size allows");
      return false;
    }
    budget_bytes_ -= bytes;
    return true;
  }
  const char* failure() const { return failure_; }

 private:
  std::size_t budget_bytes_;
  const char* failure_ = nullptr;
};

#define PATCHBAY_DECLARE_PART(Type, Wire, FIELDS)           \
  void Write(Writing& out, const Type& m, Wire::Builder b); \
  void Read(Reading& in, Wire::Reader r, Type& m);
#define PATCHBAY_DECLARE_BODY(Type, CONSTANT, FIELDS) \
  PATCHBAY_DECLARE_PART(Type, wire::Type, FIELDS)
PATCHBAY_EVERY_PART(PATCHBAY_DECLARE_PART)
PATCHBAY_EVERY_FORMED_PART(PATCHBAY_DECLARE_PART)
PATCHBAY_EVERY_UNUSUAL_PART(PATCHBAY_DECLARE_PART)
PATCHBAY_EVERY_BODY(PATCHBAY_DECLARE_BODY)
#undef PATCHBAY_DECLARE_BODY
#undef PATCHBAY_DECLARE_PART

/// `text` as a field of this type on the wire: Text or Data.
template <typename Wire>
Wire BytesAs(std::string_view text) {
  if constexpr (std::is_same_v<Wire, capnp::Text::Reader>) {
    return {text.data(), text.size()};
  } else {
    return {reinterpret_cast<const kj::byte*>(text.data()), text.size()};
  }
}

/// The enumerants of both sides are numbered alike.
template <typename Wire, typename Ours>
void ReadEnum(Reading& in, Wire value, Ours& out) {
  if (static_cast<std::uint16_t>(value) > static_cast<std::uint16_t>(kLastOf<Ours>)) {
    in.Fail("an enumerant is unknown");
    return;
  }
  out = static_cast<Ours>(value);
}

template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;

template <typename T, typename List>
void WriteElements(Writing& out, const std::vector<T>& items, List list) {
  for (unsigned i = 0; i < items.size(); ++i) {
    if constexpr (std::is_arithmetic_v<T>) {
      list.set(i, items[i]);
    } else if constexpr (std::is_same_v<T, std::string>) {
      list.set(i, BytesAs<decltype(list.asReader()[i])>(items[i]));
    } else {
      Write(out, items[i], list[i]);
    }
  }
}

/// `Wire` is what the field's getter returns; `set(builder, value)` and `init(builder)`, of a list
/// with its size, are its other accessors. An empty list is not written.
template <typename Wire, typename T, typename Builder, typename Set, typename Init>
void WriteField(Writing& out, const T& value, Builder builder, Set set, Init init) {
  if constexpr (std::is_arithmetic_v<T>) {
    set(builder, value);
  } else if constexpr (std::is_enum_v<T>) {
    set(builder, static_cast<Wire>(static_cast<std::uint16_t>(value)));
  } else if constexpr (std::is_same_v<T, std::string>) {
    set(builder, BytesAs<Wire>(value));
  } else if constexpr (std::is_same_v<T, Digest>) {
    set(builder, capnp::Data::Reader(value.bytes.data(), value.bytes.size()));
  } else if constexpr (std::is_same_v<T, Outcome>) {
    if (value != Outcome{}) Write(out, value, init(builder));  // most outcomes are good ones
  } else if constexpr (!kIsList<T>) {
    Write(out, value, init(builder));
  } else if (value.size() > kMaxListItems) {
    out.Fail("a list is longer than 65536");
  } else if (!value.empty()) {
    WriteElements(out, value, init(builder, static_cast<unsigned>(value.size())));
  }
}

/// Text and data; a digest has exactly 32 bytes, or none for "no digest" (all zero).
template <typename Wire>
void ReadBytes(Reading& in, Wire wire, std::string& value) {
  if (!in.Charge(wire.size())) return;
  value.assign(reinterpret_cast<const char*>(wire.begin()), wire.size());
}
inline void ReadBytes(Reading& in, capnp::Data::Reader wire, Digest& value) {
  if (wire.size() == 0) return;
  if (wire.size() != value.bytes.size()) {
    in.Fail("a digest is not 32 bytes long");
    return;
  }
  std::copy(wire.begin(), wire.end(), value.bytes.begin());
}

/// Fails when the list is too long or would take too much memory.
template <typename Wire, typename T>
void ReadList(Reading& in, Wire list, std::vector<T>& items) {
  if (list.size() > kMaxListItems) {
    in.Fail("a list is longer than 65536");
    return;
  }
  if (!in.Charge(list.size() * sizeof(T))) return;
  items.resize(list.size());
  for (unsigned i = 0; i < list.size() && in.failure() == nullptr; ++i) {
    if constexpr (std::is_arithmetic_v<T>) {
      items[i] = list[i];
    } else if constexpr (std::is_same_v<T, std::string>) {
      ReadBytes(in, list[i], items[i]);
    } else {
      Read(in, list[i], items[i]);
    }
  }
}

template <typename Wire, typename T>
void ReadField(Reading& in, Wire wire, T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    value = wire;
  } else if constexpr (std::is_enum_v<T>) {
    ReadEnum(in, wire, value);
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Digest>) {
    ReadBytes(in, wire, value);
  } else if constexpr (kIsList<T>) {
    ReadList(in, wire, value);
  } else {
    Read(in, wire, value);
  }
}

}  // namespace patchbay::protocol::codec
