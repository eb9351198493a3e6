#include "tensor/machine_name.h"

#include <unistd.h>

#include <array>

namespace dgc {

std::string machine_name() {
  std::array<char, 256> name{};  // gethostname() fails where the name and its zero do not fit
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace dgc
