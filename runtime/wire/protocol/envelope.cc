#include "runtime/wire/protocol/envelope.h"

namespace patchbay::protocol {

Body::Body() = default;
Body::Body(const Body& other) = default;
Body::Body(Body&& other) noexcept = default;
Body& Body::operator=(const Body& other) = default;
Body& Body::operator=(Body&& other) noexcept = default;
Body::~Body() = default;

}  // namespace patchbay::protocol
