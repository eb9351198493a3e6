#pragma once

#include <string>

namespace dgc {

// This machine's name, as the system has it (`uname -n`): whole, though a pod's or a cloud's may have 64 characters.
std::string machine_name();

}  // namespace dgc
