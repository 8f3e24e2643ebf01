#include "ops/stain_normalize/fit_stains.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "ops/colour/ink.h"

namespace patchbay::ops {
namespace {

using plan::MacenkoFit;
using plan::ReinhardFit;
using plan::StainFallback;
using plan::StainFit;
using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

constexpr double kBackgroundPercent = 1;
constexpr double kConcentrationPercentile = 99;
/// The least ratio of the second eigenvalue to the first; below it the colours lie on a line.
constexpr double kLeastSpread = 1e-9;
constexpr double kLeastStainDifference = 1e-6, kLeastConcentration = 1e-6, kLeastDeviation = 1e-6;
constexpr int kJacobiSweeps = 32;
constexpr std::size_t kColoursAtOnce = 1 << 16;  ///< between two signs of progress
constexpr double kDecimals = 1e9;

/// A colour that occurs.
struct Sample {
  Vector od{}, lab{};
  std::uint64_t pixels = 0;
  bool is_tissue = false, is_pen = false;
};

/// The colours of an image, background left out unless it is asked for, and how bright it gets.
struct Sampled {
  std::vector<Sample> samples;
  std::array<std::uint64_t, 256> darkest{};  ///< pixels by the level of their darkest channel

  /// The level that all channels of the brightest `percent` of the pixels reach.
  double Background(double percent, std::uint64_t pixels) const;
};

double Round(double value) { return std::nearbyint(value * kDecimals) / kDecimals; }

double Dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector Scaled(const Vector& v, double by) { return {v[0] * by, v[1] * by, v[2] * by}; }

Vector Sum(const Vector& a, const Vector& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }

double OdOf(double intensity, const StainFitOptions& options) {
  if (options.plus_one) return -std::log((intensity + 1) / options.white);
  return -std::log(std::clamp(intensity, 1.0, options.white) / options.white);
}

/// Red, green and blue of a colour of the histogram, in grey levels.
Vector LevelsOf(const StainHistogram& histogram, std::uint32_t colour,
                const StainFitOptions& options) {
  const std::uint32_t mask = (1u << histogram.bits) - 1;
  const Vector levels = {histogram.IntensityOf(colour >> (2 * histogram.bits)),
                         histogram.IntensityOf((colour >> histogram.bits) & mask),
                         histogram.IntensityOf(colour & mask)};
  if (!options.to_srgb) return levels;
  float shown[3];
  std::transform(levels.begin(), levels.end(), shown,
                 [](double v) { return static_cast<float>(v); });
  options.to_srgb(shown);
  return {shown[0], shown[1], shown[2]};
}

double Sampled::Background(double percent, std::uint64_t pixels) const {
  const double wanted = percent / 100 * static_cast<double>(pixels);
  std::uint64_t passed = 0;
  std::size_t level = darkest.size() - 1;
  for (; level > 0; --level) {
    passed += darkest[level];
    if (static_cast<double>(passed) >= wanted) break;
  }
  return static_cast<double>(level);
}

Sampled SamplesOf(const StainHistogram& histogram, const StainFitOptions& options,
                  const std::function<void()>& progress) {
  Sampled sampled;
  std::size_t seen = 0;
  for (const StainHistogram::Entry& entry : histogram.entries) {
    if (seen++ % kColoursAtOnce == 0) progress();
    const Vector levels = LevelsOf(histogram, entry.colour, options);
    const double darkest = std::clamp(*std::min_element(levels.begin(), levels.end()), 0.0, 255.0);
    sampled.darkest[static_cast<std::size_t>(darkest + 0.5)] += entry.pixels;
    Sample sample{.pixels = entry.pixels};
    for (std::size_t c = 0; c < 3; ++c) sample.od[c] = OdOf(levels[c], options);
    const auto [least, most] = std::minmax_element(sample.od.begin(), sample.od.end());
    sample.is_tissue = (options.every_channel ? *least : *most) > options.tissue_od;
    if (!sample.is_tissue && !options.concentrations_of_all) continue;
    sample.lab = LabOf(levels[0], levels[1], levels[2]);
    sample.is_pen = IsPen(levels[0], levels[1], levels[2]);
    sampled.samples.push_back(sample);
  }
  return sampled;
}

template <typename Is>
std::uint64_t PixelsWhere(const std::vector<Sample>& samples, Is&& is) {
  std::uint64_t pixels = 0;
  for (const Sample& s : samples) pixels += is(s) ? s.pixels : 0;
  return pixels;
}

/// The part of the tissue that is pen; takes it out of the samples where it would count.
double DropPen(std::vector<Sample>& samples) {
  const auto tissue = PixelsWhere(samples, [](const Sample& s) { return s.is_tissue; });
  const auto pen = PixelsWhere(samples, [](const Sample& s) { return s.is_tissue && s.is_pen; });
  if (pen == 0) return 0;
  const double share = static_cast<double>(pen) / static_cast<double>(tissue);
  if (share > plan::kLeastPen) std::erase_if(samples, [](const Sample& s) { return s.is_pen; });
  return share;
}

struct Moments {
  double weight = 0;
  Vector mean{};
  Matrix products{};  ///< sums of (x - mean)(x - mean)^T
};

template <typename Value>
Moments MomentsOf(const std::vector<Sample>& samples, Value&& value) {
  Moments m;
  for (const Sample& s : samples) {
    const auto weight = static_cast<double>(s.pixels);
    m.weight += weight;
    m.mean = Sum(m.mean, Scaled(value(s), weight));
  }
  m.mean = Scaled(m.mean, 1 / m.weight);
  for (const Sample& s : samples) {
    const Vector d = Sum(value(s), Scaled(m.mean, -1));
    for (std::size_t i = 0; i < 3; ++i) {
      m.products[i] = Sum(m.products[i], Scaled(d, d[i] * static_cast<double>(s.pixels)));
    }
  }
  return m;
}

struct Eigen {
  Vector values{};
  Matrix vectors{};  ///< rows
};

/// One rotation of Jacobi's that makes a[p][q] zero.
void Rotate(std::size_t p, std::size_t q, Matrix& a, Matrix& vectors) {
  if (a[p][q] == 0) return;
  const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const double t = std::copysign(1 / (std::abs(theta) + std::sqrt(theta * theta + 1)), theta);
  const double c = 1 / std::sqrt(t * t + 1), s = t * c;
  for (std::size_t k = 0; k < 3; ++k) {
    const double kp = a[k][p], kq = a[k][q];
    a[k][p] = c * kp - s * kq;
    a[k][q] = s * kp + c * kq;
  }
  for (std::size_t k = 0; k < 3; ++k) {
    const double pk = a[p][k], qk = a[q][k];
    a[p][k] = c * pk - s * qk;
    a[q][k] = s * pk + c * qk;
    const double vp = vectors[p][k], vq = vectors[q][k];
    vectors[p][k] = c * vp - s * vq;
    vectors[q][k] = s * vp + c * vq;
  }
}

/// Eigenvalues and eigenvectors of a symmetric matrix, largest value first, with a positive red
/// component.
Eigen EigenOf(Matrix a) {
  Matrix vectors = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  for (int sweep = 0; sweep < kJacobiSweeps; ++sweep) {
    for (const auto& [p, q] : {std::pair<std::size_t, std::size_t>{0, 1}, {0, 2}, {1, 2}}) {
      Rotate(p, q, a, vectors);
    }
  }
  std::array<std::size_t, 3> order = {0, 1, 2};
  std::stable_sort(order.begin(), order.end(),
                   [&a](std::size_t i, std::size_t j) { return a[i][i] > a[j][j]; });
  Eigen eigen;
  for (std::size_t i = 0; i < 3; ++i) {
    eigen.values[i] = a[order[i]][order[i]];
    eigen.vectors[i] = vectors[order[i]];
    if (eigen.vectors[i][0] < 0) eigen.vectors[i] = Scaled(eigen.vectors[i], -1);
  }
  return eigen;
}

using Weighted = std::vector<std::pair<double, std::uint64_t>>;

/// `values` sorted; percentiles linear between neighbours.
double PercentileOf(const Weighted& values, double percent) {
  std::uint64_t total = 0;
  for (const auto& [value, pixels] : values) total += pixels;
  const double at = percent / 100 * static_cast<double>(total - 1);
  const auto below = static_cast<std::uint64_t>(std::floor(at));
  const double part = at - std::floor(at);
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    passed += values[i].second;
    if (below >= passed) continue;
    const bool is_last = below + 1 >= passed;
    const double next = is_last && i + 1 < values.size() ? values[i + 1].first : values[i].first;
    return values[i].first + (next - values[i].first) * part;
  }
  return values.back().first;
}

template <typename Value>
Weighted Sorted(const std::vector<Sample>& samples, Value&& value) {
  Weighted sorted;
  sorted.reserve(samples.size());
  for (const Sample& s : samples) sorted.emplace_back(value(s), s.pixels);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

/// Both stains from the extreme angles in the plane of the two leading eigenvectors.
std::array<Vector, 2> StainsOf(const std::vector<Sample>& samples, const Eigen& eigen,
                               double percentile) {
  const Vector &first = eigen.vectors[0], &second = eigen.vectors[1];
  const Weighted angles = Sorted(
      samples, [&](const Sample& s) { return std::atan2(Dot(s.od, second), Dot(s.od, first)); });
  std::array<Vector, 2> stains;
  for (std::size_t i = 0; i < 2; ++i) {
    const double angle = PercentileOf(angles, i == 0 ? percentile : 100 - percentile);
    stains[i] = Sum(Scaled(first, std::cos(angle)), Scaled(second, std::sin(angle)));
    stains[i] = Scaled(stains[i], 1 / std::sqrt(Dot(stains[i], stains[i])));
  }
  if (stains[0][0] < stains[1][0]) std::swap(stains[0], stains[1]);
  return stains;
}

MacenkoFit FallBack(StainFallback why) {
  MacenkoFit fit = plan::DefaultMacenko();
  fit.fallback = why;
  return fit;
}

/// Concentrations over `all`, the rest over `samples`.
MacenkoFit FitMacenko(const std::vector<Sample>& samples, const std::vector<Sample>& all,
                      double percentile, const std::function<void()>& progress) {
  const Moments moments = MomentsOf(samples, [](const Sample& s) { return s.od; });
  const Eigen eigen = EigenOf(moments.products);
  if (!(eigen.values[1] > kLeastSpread * eigen.values[0]))
    return FallBack(StainFallback::kOneStain);
  MacenkoFit fit;
  progress();
  fit.stains = StainsOf(samples, eigen, percentile);
  const auto& [h, e] = fit.stains;
  if (h[0] - e[0] < kLeastStainDifference) return FallBack(StainFallback::kOneStain);
  const double cosine = Dot(h, e), determinant = 1 - cosine * cosine;
  for (std::size_t i = 0; i < 2; ++i) {
    const Vector &own = fit.stains[i], &other = fit.stains[1 - i];
    progress();
    fit.max_concentrations[i] =
        PercentileOf(Sorted(all,
                            [&, cosine](const Sample& s) {
                              return (Dot(own, s.od) - cosine * Dot(other, s.od)) / determinant;
                            }),
                     kConcentrationPercentile);
    if (!(fit.max_concentrations[i] > kLeastConcentration)) {
      return FallBack(StainFallback::kNoConcentration);
    }
  }
  return fit;
}

/// The part of the tissue that is mixtures of the fit's stains.
double ExplainedBy(const MacenkoFit& fit, const std::vector<Sample>& tissue) {
  const auto& [h, e] = fit.stains;
  const double cosine = Dot(h, e), determinant = 1 - cosine * cosine;
  const auto is_mixture = [&](const Sample& s) {
    const double along_h = Dot(h, s.od), along_e = Dot(e, s.od);
    const double of_h = (along_h - cosine * along_e) / determinant;
    const double of_e = (along_e - cosine * along_h) / determinant;
    const Vector beside = Sum(s.od, Scaled(Sum(Scaled(h, of_h), Scaled(e, of_e)), -1));
    const double length = std::sqrt(Dot(s.od, s.od));
    return std::sqrt(Dot(beside, beside)) <= plan::kExplainedResidual * length &&
           std::min(of_h, of_e) >= -plan::kExplainedNegative * length;
  };
  return static_cast<double>(PixelsWhere(tissue, is_mixture)) /
         static_cast<double>(PixelsWhere(tissue, [](const Sample&) { return true; }));
}

ReinhardFit FallBackReinhard(StainFallback why) {
  ReinhardFit fit = plan::DefaultReinhard();
  fit.fallback = why;
  return fit;
}

ReinhardFit FitReinhard(const std::vector<Sample>& samples) {
  const Moments moments = MomentsOf(samples, [](const Sample& s) { return s.lab; });
  ReinhardFit fit;
  fit.mean = moments.mean;
  for (std::size_t i = 0; i < 3; ++i) {
    fit.std[i] = std::sqrt(moments.products[i][i] / moments.weight);
    if (!(fit.std[i] > kLeastDeviation)) return FallBackReinhard(StainFallback::kOneStain);
  }
  return fit;
}

double LinearOf(double intensity) {
  const double c = intensity / 255;
  return c > 0.04045 ? std::pow((c + 0.055) / 1.055, 2.4) : c / 12.92;
}

double LabCurve(double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; }

}  // namespace

std::array<double, 3> LabOf(double red, double green, double blue) {
  constexpr Matrix kXyzFromRgb = {{{0.412453, 0.357580, 0.180423},
                                   {0.212671, 0.715160, 0.072169},
                                   {0.019334, 0.119193, 0.950227}}};
  constexpr Vector kWhite = {0.95047, 1.0, 1.08883};
  const Vector linear = {LinearOf(red), LinearOf(green), LinearOf(blue)};
  Vector f;
  for (std::size_t i = 0; i < 3; ++i) f[i] = LabCurve(Dot(kXyzFromRgb[i], linear) / kWhite[i]);
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

JudgedStains JudgeStains(const StainHistogram& histogram, const StainFitOptions& options,
                         const std::function<void()>& progress) {
  Sampled sampled = SamplesOf(histogram, options, progress);
  JudgedStains judged;
  StainFit& fit = judged.fit;
  fit.pixels = histogram.Pixels();
  judged.evidence.background = sampled.Background(kBackgroundPercent, fit.pixels);
  judged.evidence.pen = Round(DropPen(sampled.samples));
  const std::vector<Sample>& all = sampled.samples;
  std::vector<Sample> tissue;
  std::copy_if(all.begin(), all.end(), std::back_inserter(tissue),
               [](const Sample& sample) { return sample.is_tissue; });
  for (const Sample& sample : tissue) fit.tissue_pixels += sample.pixels;
  if (fit.tissue_pixels < kLeastStainPixels) {
    fit.macenko = FallBack(StainFallback::kTooFewPixels);
    fit.reinhard = FallBackReinhard(StainFallback::kTooFewPixels);
    return judged;
  }
  fit.macenko = FitMacenko(tissue, all, options.angle_percentile, progress);
  if (fit.macenko.fallback == StainFallback::kNone) {
    judged.evidence.explained = Round(ExplainedBy(fit.macenko, tissue));
  }
  progress();
  fit.reinhard = FitReinhard(tissue);
  return judged;
}

StainFit Rounded(const StainFit& fit) {
  StainFit rounded = fit;
  for (auto& stain : rounded.macenko.stains)
    std::transform(stain.begin(), stain.end(), stain.begin(), Round);
  for (double& concentration : rounded.macenko.max_concentrations) {
    concentration = Round(concentration);
  }
  for (double& mean : rounded.reinhard.mean) mean = Round(mean);
  for (double& deviation : rounded.reinhard.std) deviation = Round(deviation);
  return rounded;
}

}  // namespace patchbay::ops
