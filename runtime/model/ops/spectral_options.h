// spectral: the log-magnitude spectrum of every frame of an image, as sums that merge without loss.
//
// Definition (docs of every choice: notes/0003-spectral-definition.md of this folder). For a frame
// of `frame` x `frame` values x, at multiples of `hop` from the image's top left, whole frames
// only:
//   y = (x - mean(x)) * w, w = window(row) * window(column); X = DFT2(y), unnormalised, in float;
//   X[0,0] = sum(x * w);  L = 20 * log10(max(|X|, 1)) dB;  q = rint(L * 1024).
// Statistics run over the full plane of frame x frame coefficients: the half plane of
// frame x (frame / 2 + 1) with weight 1 in columns 0 and frame / 2, weight 2 elsewhere.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/names.h"
#include "runtime/core/status.h"
#include "runtime/format/json/described.h"

namespace patchbay::plan {

enum class SpectralWindow : std::uint8_t {
  kRect,
  kHann,  ///< periodic: 0.5 - 0.5 cos(2 pi n / frame)
};

inline constexpr auto kSpectralWindows = NamesInOrder<SpectralWindow>("rect", "hann");

enum class SpectralPrefilter : std::uint8_t {
  kNone,
  kGauss7,  ///< 7 x 7 Gaussian, sigma 1.5, in float; borders of the image reflect (reflect101)
};

inline constexpr auto kSpectralPrefilters = NamesInOrder<SpectralPrefilter>("none", "gauss7");

enum class SpectralChannel : std::uint8_t {
  kGrey,  ///< (9798 R + 19235 G + 3735 B + 16384) >> 15, equal to OpenCV's RGB2GRAY
  kRgb,   ///< red, green and blue each on its own; every channel has its own sums
};

inline constexpr auto kSpectralChannels = NamesInOrder<SpectralChannel>("grey", "rgb");

inline std::string_view NameOf(SpectralWindow window) { return kSpectralWindows.Of(window); }
inline std::string_view NameOf(SpectralPrefilter filter) { return kSpectralPrefilters.Of(filter); }
inline std::string_view NameOf(SpectralChannel channel) { return kSpectralChannels.Of(channel); }

inline constexpr int kMinSpectralFrame = 32, kMaxSpectralFrame = 512;
/// The prefilter reads this many pixels beyond a frame.
inline constexpr int kGauss7Radius = 3;

struct SpectralOptions {
  int frame = 256;  ///< side of a frame, pixels: a power of two, 32 to 512
  int hop = 128;    ///< from one frame to the next, pixels: even, 2 to frame
  SpectralWindow window = SpectralWindow::kRect;
  SpectralPrefilter prefilter = SpectralPrefilter::kNone;
  SpectralChannel channel = SpectralChannel::kGrey;
  /// Whether to keep the sums of q and q^2 of every coefficient too: 16 bytes for each of frame *
  /// (frame / 2 + 1).
  bool coefficients = false;

  bool operator==(const SpectralOptions&) const = default;
  /// InvalidArgument names the option, its value and the allowed values.
  Status Check() const;
  static constexpr auto Fields() {
    using T = SpectralOptions;
    return AsFullObject(Field("frame", &T::frame), Field("hop", &T::hop),
                        Field("window", &T::window), Field("prefilter", &T::prefilter),
                        Field("channel", &T::channel), Field("coefficients", &T::coefficients));
  }
};

/// How many channels have their own sums: 1 or 3.
int SpectralChannels(const SpectralOptions& options);

/// Whole frames along an image side of `pixels`; 0 when it is shorter than a frame.
std::int64_t FramesAlong(std::int64_t pixels, const SpectralOptions& options);

/// Pixels beyond a frame that its values depend on: 0, or kGauss7Radius under gauss7.
int SpectralHalo(const SpectralOptions& options);

}  // namespace patchbay::plan

namespace patchbay {

template <>
struct JsonForm<plan::SpectralWindow> : JsonNames<plan::SpectralWindow, &plan::kSpectralWindows> {};
template <>
struct JsonForm<plan::SpectralPrefilter>
    : JsonNames<plan::SpectralPrefilter, &plan::kSpectralPrefilters> {};
template <>
struct JsonForm<plan::SpectralChannel>
    : JsonNames<plan::SpectralChannel, &plan::kSpectralChannels> {};

}  // namespace patchbay
