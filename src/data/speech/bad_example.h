#pragma once

#include "tensor/errors.h"

namespace dgc {

// One example that cannot be trained on, as opposed to a whole data set: a file that is damaged, a transcript with
// characters outside the alphabet. A BadExample that is not caught is a UserError like any other.
struct BadExample : UserError {
  using UserError::UserError;
};

// What becomes of a bad example (data.on_bad_example).
enum class OnBadExample {
  refuse,  // the run ends with the example's message
  skip,    // the example is left out and counted
};

template <typename... Args>
[[noreturn]] void throw_bad_example(fmt::format_string<Args...> format, Args&&... args) {
  throw BadExample(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dgc
