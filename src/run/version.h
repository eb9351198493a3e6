#pragma once

#include <string>

namespace dgc {

// "0.2.0" where a tag names the source, else "0.2.0+12.g1a2b3c4": 12 commits after the tag. See cmake/version.cmake.
std::string program_version();
std::string format_versions();  // versions of the formats that dgc exchanges and saves

}  // namespace dgc
