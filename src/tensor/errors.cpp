#include "tensor/errors.h"

namespace dgc {

void check_failed(const char* expression, const std::string& what, const char* file, int line) {
  throw InternalError(fmt::format("{}:{}: {} ({} does not hold)", file, line, what, expression));
}

}  // namespace dgc
