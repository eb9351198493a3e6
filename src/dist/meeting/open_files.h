#pragma once

namespace dgc {

// A connection is an open file, and a rank may have one to every other rank. Systems allow a process some number of
// open files, often 1,024, and let it raise that up to another, which is usually far larger.

// Raises this process's number to the largest that it may choose by itself.
void raise_open_files();
// Throws UserError when rank 0 may not have as many files open as it needs while the ranks come: so many receptions,
// each with a connection for every rank and for as many strangers as it hears, and what a process has open anyway.
void require_open_files(int ranks, int receptions);

}  // namespace dgc
