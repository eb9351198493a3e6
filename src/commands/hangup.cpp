#include "commands/hangup.h"

#include <signal.h>

namespace dgc {
namespace {

struct sigaction at_start;

void note_hangup(int, char**, char**) { sigaction(SIGHUP, nullptr, &at_start); }

// Only functions in this section of a program run before the program's libraries are initialised.
[[gnu::section(".preinit_array"), gnu::used]] void (*const kNote)(int, char**, char**) = note_hangup;

}  // namespace

void restore_hangup() { sigaction(SIGHUP, &at_start, nullptr); }

}  // namespace dgc
