#include "tensor/errors.h"

#include <system_error>

namespace dgc {

std::string error_text(int error) { return std::generic_category().message(error); }

void check_failed(const char* expression, const std::string& what, const char* file, int line) {
  throw InternalError(fmt::format("{}:{}: {} ({} does not hold)", file, line, what, expression));
}

}  // namespace dgc
