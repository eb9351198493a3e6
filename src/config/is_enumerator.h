#pragma once

#include <string_view>

namespace dgc {

// Whether the value is one of the enum's own: compilers then write "Enum::name" for it, else "(Enum)4".
template <auto value>
consteval bool is_enumerator() {
  return std::string_view(__PRETTY_FUNCTION__).find("= (") == std::string_view::npos;
}

}  // namespace dgc
