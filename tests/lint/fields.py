"""A struct in a header that lists its fields for JSON is in a test that every field comes back."""
import re

import sources

LISTED = re.compile(r"^struct (\w+)[^;{}]*\{|static constexpr auto Fields\(\)|struct FieldsOf<(?:\w+::)*(\w+)>", re.MULTILINE)
NAMED = re.compile(r"ExpectEveryFieldComesBack<(?:\w+::)*(\w+)>")
TYPES = re.compile(r"testing::Types<([^;]*)>;")
EXEMPT = {
    "Extent": "part of other structs", "Point": "part of other structs", "Position": "part of other structs",
    "ImageFacts": "its fields depend on each other: image_facts_test", "ImageRow": "holds ImageFacts", "ChannelFacts": "holds a Modality: image_facts_test",
    "Modality": "its fields depend on each other: modality_test", "ModalityRecord": "the same",
    "PlannedVolume": "the form of its format is private", "PlannedChannel": "the same", "PlannedImage": "the same",
    "SpectralOptions": "its fields depend on each other", "SpectraSettings": "read by its options",
    "SpectraPart": "spectra_document_test", "SpectraSlide": "spectra_document_test",
    "SpectraCohort": "spectra_document_test", "SpectraDocument": "spectra_document_test",
}


def listed():
    """(file, name) of every struct in a header that lists its fields."""
    for file in sources.code_files():
        if file.startswith("tests/") or not file.endswith(".h") or file == "runtime/core/fields.h":
            continue
        struct = ""
        for match in LISTED.finditer(sources.read(file)):
            struct = match[1] or struct
            if match[2] or not match[1]:
                yield file, match[2] or struct


def main():
    tests = [sources.read(f) for f in sources.code_files() if f.startswith("tests/")]
    named = {name for text in tests for name in NAMED.findall(text)}
    for text in tests:
        if "ExpectEveryFieldComesBack<TypeParam>" in text:
            named |= {name for types in TYPES.findall(text) for name in re.findall(r"\w+(?=[,>\s]|$)", types)}
    sources.finish([f"{file}: {name}: no test of tests/described.h names it" for file, name in listed()
                    if name not in named and name not in EXEMPT])


if __name__ == "__main__":
    main()
