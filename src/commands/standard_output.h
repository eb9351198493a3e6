#pragma once

#include <functional>
#include <string>

namespace dgc {

// A file opened while standard input, output or error is closed would take that stream's number, and what is printed
// would go into the file. To be called first: it opens /dev/null in the place of each closed stream, so that every use
// of the stream fails.
void fill_closed_streams();

// Runs `command`, which prints. Throws UserError when not all of the output has reached the system in the end.
void print_all(const std::function<void()>& command);

// Prints one JSON value and the end of the line, as printable_json() writes it: what `--json` prints.
void print_json(const std::string& json);

}  // namespace dgc
