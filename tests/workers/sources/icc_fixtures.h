// ICC profiles for tests, made by Little CMS.
#pragma once

#include <string>

#include <lcms2.h>

namespace patchbay::workers {

inline std::string SavedProfile(cmsHPROFILE profile) {
  cmsUInt32Number size = 0;
  cmsSaveProfileToMem(profile, nullptr, &size);
  std::string bytes(size, '\0');
  cmsSaveProfileToMem(profile, bytes.data(), &size);
  cmsCloseProfile(profile);
  return bytes;
}

inline cmsCIExyY Chromaticity(double x, double y) { return {x, y, 1}; }

/// A device of those curves, wider in green than sRGB, which says whose it is.
inline std::string ScannerProfile(double gamma, const char* owner = "a scanner") {
  cmsCIExyY white = Chromaticity(0.3127, 0.3290);
  cmsCIExyYTRIPLE primaries = {Chromaticity(0.64, 0.33), Chromaticity(0.21, 0.71),
                               Chromaticity(0.15, 0.06)};
  cmsToneCurve* curve = cmsBuildGamma(nullptr, gamma);
  cmsToneCurve* curves[3] = {curve, curve, curve};
  const cmsHPROFILE profile = cmsCreateRGBProfile(&white, &primaries, curves);
  cmsMLU* text = cmsMLUalloc(nullptr, 1);
  cmsMLUsetASCII(text, "en", "US", owner);
  cmsWriteTag(profile, cmsSigProfileDescriptionTag, text);
  cmsWriteTag(profile, cmsSigCopyrightTag, text);
  cmsMLUfree(text);
  cmsFreeToneCurve(curve);
  return SavedProfile(profile);
}

inline std::string GreyProfile() {
  cmsToneCurve* curve = cmsBuildGamma(nullptr, 2.2);
  const std::string bytes = SavedProfile(cmsCreateGrayProfile(cmsD50_xyY(), curve));
  cmsFreeToneCurve(curve);
  return bytes;
}

}  // namespace patchbay::workers
