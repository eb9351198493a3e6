#pragma once

#include <string>

#include "tensor/errors.h"

namespace dgc {

// One example that cannot be trained on, as opposed to a whole data set: a file that is damaged, a transcript with
// characters outside the alphabet. Nobody needs to catch it: it is the user's error like any other.
struct BadExample : UserError {
  using UserError::UserError;
};

// data.on_bad_example: what becomes of it.
enum class OnBadExample {
  refuse,  // the run ends with its sentence
  skip,    // it is left out and counted
};

template <typename... Args>
[[noreturn]] void throw_bad_example(fmt::format_string<Args...> format, Args&&... args) {
  throw BadExample(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dgc
