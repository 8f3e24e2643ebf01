// The kind of a volume and the unit of its values: a fact of the image, from its file, a table or a
// flag.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay {

struct Modality {
  std::string name;  ///< as DICOM has it: "CT", "MR", "PT"; "OT": any other
  std::string unit;  ///< "HU" (of CT alone), "SUVbw" and "Bq/ml" (of PT alone), "arbitrary"

  bool IsHu() const { return unit == "HU"; }
  /// "CT" in HU, "MR" and "OT" in arbitrary units; "PT:SUVbw", "CT:arbitrary": as ParseModality
  /// takes it.
  std::string ToString() const;
  Status Check() const;
  bool operator==(const Modality&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("name", &Modality::name).Required(),
                    Field("unit", &Modality::unit).Required());
  }
};

/// All texts that ParseModality takes, in capitals.
std::vector<std::string> ModalityNames();
/// Any case; "MRI" and "PET" are MR and PT. InvalidArgument lists the names.
StatusOr<Modality> ParseModality(std::string_view text);

/// The modality of a volume and its origin, as a store records it.
struct ModalityRecord : Modality {
  std::string from;  ///< "table", "--modality", "side-car", "dataset.json", "synthetic"
  /// The file's own word, where it differs.
  std::optional<Modality> stated = {};

  static constexpr auto Fields() {
    return Extending<Modality>(
        AsObject(Field("from", &ModalityRecord::from), Field("stated", &ModalityRecord::stated)));
  }
};

/// The modality in a store's attributes.patchbay: `modality`, or that of the DICOM series which
/// `acquisition` is of; nullopt where neither says it.
std::optional<Modality> RecordedModality(const Json& attributes);

/// The modality that the side-car of a NIfTI file (BIDS, dcm2niix) states.
std::optional<Modality> SideCarModality(const Json& side_car);
/// The modality of the one channel of a dataset.json of nnU-Net or MSD: CT, or a well-known name of
/// MR or PET.
std::optional<Modality> DatasetModality(const Json& dataset);

}  // namespace patchbay
