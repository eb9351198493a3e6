#pragma once

#include <cstdint>

namespace dgc {

// A connection is an open file, and a rank may have one to every other rank. Systems allow a process some number of
// open files, often 1,024, and let it raise that up to another, which is usually far larger.

// Raises this process's number to the largest that it may choose by itself.
void raise_open_files();
// Throws UserError when this process may not have as many files open, of which `ranks` gives the reason.
void require_open_files(int64_t files, int ranks);

}  // namespace dgc
