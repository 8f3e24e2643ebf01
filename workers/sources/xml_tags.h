// Just enough of XML to read attributes of a slide's description: tags one after another.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace patchbay::workers {

/// A tag as it lies in the text: `name` without its prefix, `attributes` all that follows it.
struct XmlTag {
  std::string_view name, attributes;
  bool is_end = false;    ///< </name>
  bool is_empty = false;  ///< <name/>: no end follows
  std::string_view rest;  ///< the text behind it
};

/// The first tag of `text`, comments and declarations skipped; nothing where there is none, or none
/// that ends.
std::optional<XmlTag> NextXmlTag(std::string_view text);

/// The first start of an element of that name.
std::optional<XmlTag> FindXmlTag(std::string_view text, std::string_view name);

/// The value of an attribute between its quotes, entities as they are.
std::optional<std::string_view> XmlAttribute(const XmlTag& tag, std::string_view name);

/// A value with its entities replaced; one that XML does not know stays as it is.
std::string DecodedXml(std::string_view value);

}  // namespace patchbay::workers
