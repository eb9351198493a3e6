#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <utility>

namespace dgc::ptx {

// A mistake of a kernel that a GPU would answer with a hang, a fault or wrong numbers; or PTX that the interpreter does
// not know. One sentence that names the file and the line.
struct PtxError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void throw_ptx_error(fmt::format_string<Args...> format, Args&&... args) {
  throw PtxError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dgc::ptx
