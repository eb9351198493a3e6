#pragma once

#include <string>

namespace dgc {

std::string program_version();  // "0.1.0 (1a2b3c4)": of the program and of the source it was configured in
std::string format_versions();  // of what it exchanges and saves

}  // namespace dgc
