#include "workers/sources/dicom/dicom_elements.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::uint64_t kPreambleBytes = 128, kMarkBytes = 4;
constexpr std::size_t kWindowBytes = std::size_t{16} << 10;
constexpr std::size_t kMaxTextBytes = 1024;
constexpr std::uint32_t kTransferSyntax = 0x00020010;
constexpr std::string_view kImplicit = "1.2.840.10008.1.2", kBigEndian = "1.2.840.10008.1.2.2",
                           kDeflated = "1.2.840.10008.1.2.1.99";
/// Sequences whose items are looked into where their type is not in the file.
constexpr std::uint32_t kSequences[] = {0x00289110, 0x00480105, 0x00480207,
                                        0x0048021A, 0x52009229, 0x52009230};
/// Types whose length has four bytes, after two that are reserved.
constexpr std::string_view kLongTypes[] = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ",
                                           "SV", "UC", "UN", "UR", "UT", "UV"};

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

std::uint32_t TagAt(const std::byte* from) {
  return std::uint32_t{Load<std::uint16_t>(from)} << 16 | Load<std::uint16_t>(from + 2);
}

Status EndsEarly() { return InvalidArgument("the file ends before its pixels do"); }

}  // namespace

/// An item or a sequence on the way; the data set itself is the first.
struct DicomElements::Level {
  bool is_sequence = false;
  bool is_implicit = false;
  bool is_open = false;  ///< ends by a delimiter, not at `end`
  std::uint64_t end = 0;
};

/// An element without its value.
struct DicomElements::Head {
  DicomValue value;
  bool is_sequence = false;
  bool is_implicit = false;  ///< the items of the sequence are
};

std::string DicomTagName(std::uint32_t tag) {
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "(%04x,%04x)", tag >> 16, tag & 0xFFFF);
  return name.data();
}

bool IsDicomItem(std::span<const std::byte> bytes) {
  return bytes.size() >= kDicomItemBytes && TagAt(bytes.data()) == kDicomItem &&
         Load<std::uint32_t>(bytes.data() + 4) == bytes.size() - kDicomItemBytes;
}

StatusOr<DicomElements> DicomElements::Open(std::shared_ptr<const zarr::StoredBytes> file) {
  DicomElements elements(std::move(file));
  std::array<std::byte, kMarkBytes> mark{};
  const Status read = elements.file_->Read(kPreambleBytes, mark, "slide");
  if (!read.ok() || std::memcmp(mark.data(), "DICM", kMarkBytes) != 0) {
    return InvalidArgument("not a DICOM file");
  }
  DicomVisitor visitor;
  visitor.item = [](DicomSequences) { return absl::OkStatus(); };
  visitor.value = [&elements](DicomSequences, const DicomValue& value) -> StatusOr<bool> {
    elements.data_set_ = value.offset + value.size_bytes;
    if (value.tag >> 16 != 2) {
      return InvalidArgument("no file meta information (0002,0010) before the data set");
    }
    if (value.tag == kTransferSyntax) {
      PB_ASSIGN_OR_RETURN(elements.transfer_syntax_, elements.Text(value));
    }
    PB_ASSIGN_OR_RETURN(const std::byte* next, elements.Bytes(elements.data_set_, 4));
    return TagAt(next) >> 16 == 2;
  };
  PB_RETURN_IF_ERROR(elements.WalkFrom(kPreambleBytes + kMarkBytes, false, visitor));
  const std::string& syntax = elements.transfer_syntax_;
  if (syntax == kDeflated || syntax == kBigEndian) {
    return Unimplemented("transfer syntax ", syntax, " (0002,0010): a ",
                         syntax == kDeflated ? "deflated" : "big-endian", " data set is not read");
  }
  return elements;
}

Status DicomElements::Walk(const DicomVisitor& visitor) {
  return WalkFrom(data_set_, transfer_syntax_ == kImplicit, visitor);
}

/// At most kWindowBytes; valid until the next call.
StatusOr<const std::byte*> DicomElements::Bytes(std::uint64_t offset, std::size_t size) {
  const std::uint64_t all = file_->size_bytes();
  if (offset > all || size > all - offset) return EndsEarly();
  if (offset < window_offset_ || offset + size > window_offset_ + window_.size()) {
    window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kWindowBytes, all - offset)));
    window_offset_ = offset;
    PB_RETURN_IF_ERROR(file_->Read(offset, window_, "slide"));
  }
  return window_.data() + (offset - window_offset_);
}

StatusOr<DicomElements::Head> DicomElements::HeadAt(std::uint64_t offset, bool is_implicit) {
  PB_ASSIGN_OR_RETURN(const std::byte* from, Bytes(offset, 8));
  Head head{.value = {.tag = TagAt(from)}, .is_implicit = is_implicit};
  const std::uint32_t tag = head.value.tag;
  const std::string_view type(reinterpret_cast<const char*>(from + 4), 2);
  const bool is_long =
      std::find(std::begin(kLongTypes), std::end(kLongTypes), type) != std::end(kLongTypes);
  bool is_untyped = is_implicit;
  if (is_implicit) {
    head.value.size_bytes = Load<std::uint32_t>(from + 4);
    head.value.offset = offset + 8;
  } else if (!is_long) {
    head.value.size_bytes = Load<std::uint16_t>(from + 6);
    head.value.offset = offset + 8;
  } else {
    is_untyped = type == "UN";
    head.is_sequence = type == "SQ";
    PB_ASSIGN_OR_RETURN(from, Bytes(offset, 12));
    head.value.size_bytes = Load<std::uint32_t>(from + 8);
    head.value.offset = offset + 12;
  }
  if (tag == kDicomPixels) return head;
  const bool is_known =
      std::find(std::begin(kSequences), std::end(kSequences), tag) != std::end(kSequences);
  if (is_untyped && (is_known || head.value.size_bytes == kUndefinedLength)) {
    head.is_sequence = head.is_implicit = true;
  }
  return head;
}

Status DicomElements::WalkFrom(std::uint64_t offset, bool is_implicit,
                               const DicomVisitor& visitor) {
  std::vector<Level> levels = {{false, is_implicit, false, file_->size_bytes()}};
  std::vector<std::uint32_t> within;
  const auto leave = [&] {
    if (levels.back().is_sequence) within.pop_back();
    levels.pop_back();
  };
  for (std::size_t count = 0;; ++count) {
    if (count > kMaxDicomElements) {
      return InvalidArgument("more than ", kMaxDicomElements, " elements before the pixels");
    }
    while (levels.size() > 1 && !levels.back().is_open && offset == levels.back().end) leave();
    const Level level = levels.back();
    if (levels.size() == 1 && offset == level.end) return absl::OkStatus();  // without pixels
    if (offset >= level.end) return InvalidArgument("an element reaches past what holds it");
    PB_ASSIGN_OR_RETURN(const Item item, ItemAt(offset));
    const bool is_end = item.tag == (level.is_sequence ? kDicomSequenceEnd : kDicomItemEnd);
    if (is_end && level.is_open) {
      offset += 8;
      leave();
      continue;
    }
    Head head;
    if (level.is_sequence) {
      if (item.tag != kDicomItem) {
        return InvalidArgument("sequence ", DicomTagName(within.back()), ": no item at byte ",
                               offset);
      }
      head = {{item.tag, offset + 8, item.size_bytes}, false, level.is_implicit};
    } else {
      PB_ASSIGN_OR_RETURN(head, HeadAt(offset, level.is_implicit));
    }
    const DicomValue& value = head.value;
    const bool is_open = value.size_bytes == kUndefinedLength;
    const bool is_pixels = value.tag == kDicomPixels && levels.size() == 1;
    if (is_open ? !(head.is_sequence || level.is_sequence || is_pixels)
                : value.offset > level.end || value.size_bytes > level.end - value.offset) {
      return InvalidArgument(DicomTagName(value.tag), ": its value reaches past what holds it");
    }
    offset = value.offset;
    if (head.is_sequence || level.is_sequence) {
      if (levels.size() > kMaxDicomDepth) {
        return InvalidArgument("its sequences are nested too deep");
      }
      if (head.is_sequence) within.push_back(value.tag);
      levels.push_back({head.is_sequence, head.is_implicit, is_open,
                        is_open ? level.end : value.offset + value.size_bytes});
      if (level.is_sequence) PB_RETURN_IF_ERROR(visitor.item(within));
      continue;
    }
    PB_ASSIGN_OR_RETURN(const bool goes_on, visitor.value(within, value));
    if (!goes_on || is_pixels) return absl::OkStatus();
    offset += value.size_bytes;
  }
}

StatusOr<std::string> DicomElements::Text(const DicomValue& value) {
  if (value.size_bytes > kMaxTextBytes) {
    return InvalidArgument(DicomTagName(value.tag), ": ", value.size_bytes, " bytes of text");
  }
  const auto size = static_cast<std::size_t>(value.size_bytes);
  PB_ASSIGN_OR_RETURN(const std::byte* from, Bytes(value.offset, size));
  std::string text(reinterpret_cast<const char*>(from), size);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.pop_back();
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

StatusOr<std::uint16_t> DicomElements::Short(const DicomValue& value) {
  if (value.size_bytes != 2) return InvalidArgument(DicomTagName(value.tag), ": not one number");
  PB_ASSIGN_OR_RETURN(const std::byte* from, Bytes(value.offset, 2));
  return Load<std::uint16_t>(from);
}

StatusOr<std::uint32_t> DicomElements::Long(const DicomValue& value) {
  if (value.size_bytes != 4) return InvalidArgument(DicomTagName(value.tag), ": not one number");
  PB_ASSIGN_OR_RETURN(const std::byte* from, Bytes(value.offset, 4));
  return Load<std::uint32_t>(from);
}

StatusOr<DicomElements::Item> DicomElements::ItemAt(std::uint64_t offset) {
  std::array<std::byte, 8> head{};
  if (offset >= window_offset_ && offset + 8 <= window_offset_ + window_.size()) {
    std::memcpy(head.data(), window_.data() + (offset - window_offset_), head.size());
  } else if (offset > file_bytes() || file_bytes() - offset < head.size()) {
    return EndsEarly();
  } else {
    PB_RETURN_IF_ERROR(file_->Read(offset, head, "slide"));
  }
  return Item{TagAt(head.data()), Load<std::uint32_t>(head.data() + 4)};
}

StatusOr<std::vector<std::uint64_t>> DicomElements::Numbers(std::uint64_t offset, std::size_t count,
                                                            std::size_t width) {
  if (offset > file_bytes() || (file_bytes() - offset) / width < count) return EndsEarly();
  std::vector<std::byte> bytes(count * width);
  PB_RETURN_IF_ERROR(file_->Read(offset, bytes, "slide"));
  std::vector<std::uint64_t> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* from = bytes.data() + i * width;
    numbers[i] = width == 4 ? Load<std::uint32_t>(from) : Load<std::uint64_t>(from);
  }
  return numbers;
}

}  // namespace patchbay::workers
