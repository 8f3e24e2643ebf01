#include "workers/sources/volumes/byte_stream.h"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

/// Deflate cannot do better than 1032 to 1.
constexpr std::uint64_t kMostInflation = 1032;
constexpr int kZlibOrGzip = 15 + 32, kRaw = -15;

Status Cut() { return DataLoss("read volume: the file ends before its voxels do"); }
Status DamagedStream() { return DataLoss("read volume: the compressed bytes are damaged"); }

}  // namespace

struct ByteStream::State {
  UniqueFd fd;
  std::uint64_t at = 0, size = 0;
  Packing packing = Packing::kNone;
  z_stream inflater{};
  bool is_started = false, is_ended = false;
  std::array<std::byte, 1u << 16> block;

  ~State() {
    if (is_started) inflateEnd(&inflater);
  }

  Status Refill() {
    if (at >= size) return Cut();
    const auto part = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size - at)));
    PB_RETURN_IF_ERROR(ReadAt(fd.get(), at, part, "file"));
    at += part.size();
    inflater.next_in = reinterpret_cast<Bytef*>(part.data());
    inflater.avail_in = static_cast<uInt>(part.size());
    return absl::OkStatus();
  }

  Status Inflate(std::span<std::byte> out) {
    while (!out.empty()) {
      if (is_ended) return Cut();
      if (inflater.avail_in == 0) PB_RETURN_IF_ERROR(Refill());
      const std::size_t take = std::min<std::size_t>(out.size(), 1u << 30);
      inflater.next_out = reinterpret_cast<Bytef*>(out.data());
      inflater.avail_out = static_cast<uInt>(take);
      const int result = inflate(&inflater, Z_NO_FLUSH);
      out = out.subspan(take - inflater.avail_out);
      if (result == Z_STREAM_END) is_ended = true;
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return DamagedStream();
      }
    }
    return absl::OkStatus();
  }

  /// Skips bytes on the way to the end; returns their number.
  StatusOr<std::uint64_t> PassOver() {
    if (inflater.avail_in == 0) PB_RETURN_IF_ERROR(Refill());
    std::array<Bytef, 1u << 16> passed;
    inflater.next_out = passed.data();
    inflater.avail_out = static_cast<uInt>(passed.size());
    const int result = inflate(&inflater, Z_NO_FLUSH);
    is_ended = result == Z_STREAM_END;
    if (result != Z_OK && !is_ended && result != Z_BUF_ERROR) return DamagedStream();
    return passed.size() - inflater.avail_out;
  }
};

ByteStream::ByteStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;
ByteStream::~ByteStream() = default;

StatusOr<ByteStream> ByteStream::Open(const Folders& allowed, const std::string& path,
                                      std::uint64_t offset, Packing packing) {
  auto state = std::make_unique<State>();
  PB_ASSIGN_OR_RETURN(state->fd, OpenFile(allowed, path, O_RDONLY | O_NONBLOCK));
  struct stat st {};
  if (fstat(state->fd.get(), &st) != 0) return FromErrno("stat", path, errno);
  if (!S_ISREG(st.st_mode)) return InvalidArgument("read volume: not a regular file");
  state->size = static_cast<std::uint64_t>(st.st_size);
  state->at = std::min(offset, state->size);
  state->packing = packing;
  if (packing != Packing::kNone) {
    const int window = packing == Packing::kDeflated ? kZlibOrGzip : kRaw;
    if (inflateInit2(&state->inflater, window) != Z_OK) {
      return ResourceExhausted("read volume: no memory to inflate");
    }
    state->is_started = true;
  }
  return ByteStream(std::move(state));
}

StatusOr<ByteStream::Packing> ByteStream::PackingOf(const Folders& allowed,
                                                    const std::string& path) {
  PB_ASSIGN_OR_RETURN(ByteStream raw, Open(allowed, path, 0, Packing::kNone));
  std::array<std::byte, 2> head{};
  if (raw.MostLeft() < head.size()) return Packing::kNone;
  PB_RETURN_IF_ERROR(raw.Read(head));
  const bool is_gzip = head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b};
  return is_gzip ? Packing::kDeflated : Packing::kNone;
}

Status ByteStream::Read(std::span<std::byte> out) {
  if (state_->packing != Packing::kNone) return state_->Inflate(out);
  if (out.size() > state_->size - state_->at) return Cut();
  PB_RETURN_IF_ERROR(ReadAt(state_->fd.get(), state_->at, out, "file"));
  state_->at += out.size();
  return absl::OkStatus();
}

Status ByteStream::Skip(std::uint64_t bytes) {
  if (bytes > MostLeft()) return Cut();
  if (state_->packing == Packing::kNone) {
    state_->at += bytes;
    return absl::OkStatus();
  }
  std::vector<std::byte> scratch(std::min<std::uint64_t>(bytes, 1u << 16));
  while (bytes > 0) {
    const auto part = std::span(scratch).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, scratch.size())));
    PB_RETURN_IF_ERROR(Read(part));
    bytes -= part.size();
  }
  return absl::OkStatus();
}

Status ByteStream::ReadToEnd(const std::function<Status()>& go_on, std::uint64_t most) {
  if (state_->packing == Packing::kNone) return absl::OkStatus();
  for (std::uint64_t passed = 0; !state_->is_ended;) {
    PB_ASSIGN_OR_RETURN(const std::uint64_t more, state_->PassOver());
    passed += more;
    if (passed > most) {
      return DataLoss("read volume: more bytes follow its voxels than its header accounts for");
    }
    if (go_on && passed % (std::uint64_t{64} << 20) < more) PB_RETURN_IF_ERROR(go_on());
  }
  return absl::OkStatus();
}

StatusOr<bool> ByteStream::IsAtEnd() {
  State& s = *state_;
  const std::uint64_t left = s.inflater.avail_in + (s.size - s.at);
  if (!s.is_ended || left > 1) return false;
  if (left == 0) return true;
  if (s.inflater.avail_in == 0) PB_RETURN_IF_ERROR(s.Refill());
  return *s.inflater.next_in == 0;
}

std::uint64_t ByteStream::MostLeft() const {
  const std::uint64_t left = state_->size - state_->at + state_->inflater.avail_in;
  return state_->packing == Packing::kNone ? left : (left + 1) * kMostInflation;
}

}  // namespace patchbay::workers
