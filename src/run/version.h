#pragma once

#include <string>

namespace dgc {

// "0.2.0" where a tag names the source, else "0.2.0+12.g1a2b3c4": 12 commits behind it. See cmake/version.cmake.
std::string program_version();
std::string format_versions();  // of what it exchanges and saves

}  // namespace dgc
