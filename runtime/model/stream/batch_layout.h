// The arrays of a batch. Part of the plan's text, so of its digest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay {

inline constexpr std::size_t kMaxArrays = 16;
inline constexpr std::size_t kMaxArrayNameBytes = 64;
/// Axes of one patch of an array; a batch has one more.
inline constexpr std::size_t kMaxPatchAxes = 5;

/// The memory of the trainer that an array lies in.
enum class ArrayMemory : std::uint8_t {
  kStream,  ///< where the stream delivers: host memory, or the trainer's device
  kHost,    ///< host memory, whatever the stream delivers to
};

struct ArrayLayout {
  std::string name;
  DType dtype = DType::kUint8;
  std::vector<std::int64_t> shape;  ///< shape of one patch, C order; empty = one element a patch
  ArrayMemory memory = ArrayMemory::kStream;

  bool operator==(const ArrayLayout&) const = default;
  /// Bytes of one patch.
  std::uint64_t PatchBytes() const;
};

/// The arrays of a batch, in order. Within one, patches lie one after another.
struct BatchLayout {
  std::vector<ArrayLayout> arrays;

  bool operator==(const BatchLayout&) const = default;
  /// Bytes of one patch, all arrays together.
  std::uint64_t PatchBytes() const;
  /// SHA-256 of the canonical JSON.
  Digest ToDigest() const;
};

/// InvalidArgument naming the array unless there are 1 to kMaxArrays arrays, each with a name of
/// its own (lower-case letters, digits and underscores), at most kMaxPatchAxes axes, and no more
/// bytes than a slot may have.
Status CheckLayout(const BatchLayout& layout);

/// [{"name", "dtype", "shape", "memory": "stream" | "host"}, ...]
Json ToJson(const BatchLayout& layout);
/// InvalidArgument also where CheckLayout fails.
StatusOr<BatchLayout> BatchLayoutFromJson(const Json& value);

/// The layout that a plan's text carries. InvalidArgument when it has none.
StatusOr<BatchLayout> LayoutOfPlan(std::string_view plan_text);

/// ordinal (int64), image_index (int32), level (int32) and box (int64 x 6: z, y, x, depth, height,
/// width in level pixels), which describe the origin of each patch.
std::vector<ArrayLayout> MetaArrays();

}  // namespace patchbay
