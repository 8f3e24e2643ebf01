#include "runtime/model/ops/stain_references.h"

#include <algorithm>
#include <utility>

#include "runtime/core/names.h"
#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

constexpr StainProfile kProfiles[] = {StainProfile::kMacenkoCucim, StainProfile::kReinhard};

StainProfile ProfileOf(const Json& name) {
  for (const StainProfile profile : kProfiles) {
    if (NameOf(profile) == name.get_ref<const std::string&>()) return profile;
  }
  return StainProfile::kMacenkoCucim;
}

constexpr auto kMisfits = NamesInOrder<StainMisfit>("refuse", "keep", "skip");

/// Calls `change` with the options of every step that maps stains.
template <typename Change>
void ForEachStainOp(OpLists& lists, const Change& change) {
  for (Json* list : {&lists.preprocess, &lists.augment}) {
    for (Json& step : *list) {
      const auto options = step.begin();
      const OpRow* op = lists.ops->Find(options.key());  // null: a function of the user's
      if (op != nullptr && op->needs.stain) change(*options);
    }
  }
}

/// One fit a reference, as `from` reads numbers.
template <typename Fit, typename FromValues>
std::vector<Fit> References(const StainReferences& options, const Fit& shipped,
                            const FromValues& from) {
  if (!options.IsByScanner()) {
    return {options.reference_fit.empty() ? shipped : from(options.reference_fit).value()};
  }
  std::vector<Fit> fits;
  for (std::size_t i = 0; i < options.scanner_fits.size(); ++i) {
    fits.push_back(from(options.scanner_fits[StrCat(i)]).value());
  }
  return fits;
}

}  // namespace

std::string_view NameOf(StainProfile profile) {
  return profile == StainProfile::kReinhard ? "reinhard" : "macenko/cucim";
}

std::string_view NameOf(StainMisfit misfit) { return kMisfits.Of(misfit); }

StainReferences StainReferences::FromJson(const Json& options) {
  return {
      ProfileOf(options["profile"]),
      options["reference"].get<std::string>(),
      options["reference_fit"],
      options["scanners"],
      options["scanner_fits"],
      options["scanner_column"].get<std::string>(),
      kMisfits.Find(options["misfit"].get_ref<const std::string&>()).value_or(StainMisfit::kRefuse),
      options["tissue"].get<std::string>(),
      options["alpha"].get<double>(),
      options["beta"].get<double>(),
      options["background"].get<double>()};
}

std::map<std::string, std::string> StainReferences::Unsettled() const {
  std::map<std::string, std::string> names;
  for (const auto& [scanner, name] : scanners.items()) names[scanner] = name.get<std::string>();
  if (reference != kDefaultReference) names[""] = reference;
  return names;
}

bool StainReferences::NeedsCohort() const {
  const auto names = Unsettled();
  return std::any_of(names.begin(), names.end(),
                     [](const auto& each) { return each.second == kCohortReference; });
}

std::vector<MacenkoFit> StainReferences::MacenkoReferences() const {
  return References(*this, DefaultMacenko(), MacenkoFromValues);
}

std::vector<ReinhardFit> StainReferences::ReinhardReferences() const {
  return References(*this, DefaultReinhard(), ReinhardFromValues);
}

std::string PictureStatistic(std::string_view reference) {
  return StrCat(kStainReference, ":", reference);
}

bool IsPictureReference(std::string_view reference) {
  return reference != kDefaultReference && reference != kCohortReference;
}

FoundOp FindStainOp(const OpLists& lists) {
  return lists.Find([](const OpRow& op, const Json&) { return op.needs.stain; });
}

std::optional<StainReferences> FindStainReferences(const OpLists& lists) {
  const FoundOp found = FindStainOp(lists);
  if (!found) return std::nullopt;
  return StainReferences::FromJson(*found.options);
}

void SetStainReference(OpLists& lists, const std::string& scanner, std::string_view reference) {
  ForEachStainOp(lists, [&](Json& options) {
    (scanner.empty() ? options["reference"] : options["scanners"][scanner]) = reference;
  });
}

void SettleStainReference(OpLists& lists, const std::string& scanner, const Json& fit) {
  ForEachStainOp(lists, [&](Json& options) {
    if (scanner.empty()) {
      options["reference"] = kDefaultReference;
      options["reference_fit"] = fit;
    } else {
      options["scanners"].erase(scanner);
      options["scanner_fits"][scanner] = fit;
    }
  });
}

void SettleCohortReferences(OpLists& lists, const Json& fit) {
  const auto normalize = FindStainReferences(lists);
  if (!normalize) return;
  for (const auto& [scanner, reference] : normalize->Unsettled()) {
    if (reference == kCohortReference) SettleStainReference(lists, scanner, fit);
  }
}

void SetTissueOfFits(OpLists& lists, std::string_view tissue) {
  ForEachStainOp(lists, [&](Json& options) { options["tissue"] = tissue; });
}

void NumberScanners(OpLists& lists, const std::vector<std::string>& names) {
  ForEachStainOp(lists, [&](Json& options) {
    for (const char* const map : {"scanners", "scanner_fits"}) {
      Json numbered = Json::object();
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (options[map].contains(names[i])) numbered[StrCat(i)] = options[map][names[i]];
      }
      options[map] = std::move(numbered);
    }
    options["scanner_column"] = kScannerColumn;
  });
}

}  // namespace patchbay::plan
