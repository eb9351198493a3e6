#pragma once

#include <functional>

namespace dgc {

// A file opened while standard input, output or error is closed would take its number, and what is printed would go
// into that file. Call first: it fills the gaps with what can be neither read nor written.
void fill_closed_streams();

// Runs `command`, which prints. Throws UserError when not all of it has reached the system in the end.
void print_all(const std::function<void()>& command);

}  // namespace dgc
